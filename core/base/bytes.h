// Byte counts as people read them.
//
// Threads  Pure.
// Units    Powers of 1024: "0 B", "1023 B", "1.5 GiB".

#pragma once

#include <cstdint>
#include <string>

namespace mr {

// One digit after the point from KiB on.
std::string formatBytes(std::uint64_t bytes);

} // namespace mr
