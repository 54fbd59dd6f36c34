// Which process writes a run, in a form that another process can check later.
//
// A process number alone is reused, quickly so in containers; with the boot's id and the process's
// start time it is unique.
//
// Threads  Any.

#pragma once

#include <cstdint>
#include <string>

namespace mr {

struct ProcessIdentity {
    std::int64_t pid = 0;
    std::string boot; // "<boot id>:<start time in clock ticks since boot>"
};

ProcessIdentity thisProcess();
bool isAlive(const ProcessIdentity& process);

} // namespace mr
