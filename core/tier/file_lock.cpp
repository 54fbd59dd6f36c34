#include "core/tier/file_lock.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace mr {

// "1: FLOCK  ADVISORY  WRITE 1234 fe:00:1234567 0 EOF" (proc(5)).
pid_t lockHolder(std::uint64_t inode)
{
    std::ifstream locks("/proc/locks");
    std::string line;
    while (std::getline(locks, line)) {
        std::istringstream words(line);
        std::string number, kind, mode, access, file;
        pid_t process = 0;
        if ((words >> number >> kind >> mode >> access >> process >> file) && kind == "FLOCK" &&
            file.ends_with(fmt::format(":{}", inode)))
            return process;
    }
    return 0;
}

bool isGone(pid_t program)
{
    const std::string image = fmt::format("/proc/{}/exe", program);
    return ::access(image.c_str(), F_OK) != 0;
}

} // namespace mr
