#include "core/store/process_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace mr {
namespace {

std::string bootId()
{
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string id;
    in >> id;
    return id;
}

// Field 22 of /proc/<pid>/stat (proc(5)); empty if there is no such process, or only its corpse.
std::string startTime(std::int64_t pid)
{
    std::ifstream in(fmt::format("/proc/{}/stat", pid));
    std::string line;
    if (!std::getline(in, line))
        return {};
    // The second field is a name in brackets that may itself hold spaces and brackets.
    const std::size_t nameEnd = line.rfind(')');
    if (nameEnd == std::string::npos)
        return {};
    std::istringstream rest(line.substr(nameEnd + 1));
    std::string field;
    for (int number = 3; number <= 22; ++number) {
        if (!(rest >> field))
            return {};
        if (number == 3 && (field == "Z" || field == "X"))
            return {};
    }
    return field;
}

} // namespace

ProcessIdentity thisProcess()
{
    const std::int64_t pid = ::getpid();
    return {pid, bootId() + ":" + startTime(pid)};
}

bool isAlive(const ProcessIdentity& process)
{
    const std::string start = startTime(process.pid);
    return !start.empty() && bootId() + ":" + start == process.boot;
}

} // namespace mr
