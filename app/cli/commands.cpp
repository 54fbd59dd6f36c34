#include "app/cli/commands.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace mr::app {

int exitCode(const Status& status) noexcept
{
    if (status.ok())
        return 0;
    switch (status.kind()) {
    case ErrorKind::InvalidArgument:
    case ErrorKind::DataCorrupt:
        return 2;
    case ErrorKind::OutOfMemory:
        return 3;
    case ErrorKind::Cancelled:
        return 130;
    case ErrorKind::Io:
    case ErrorKind::DeviceLost:
    case ErrorKind::Internal:
        return 4;
    }
    return 4;
}

int fail(const Status& status, bool json)
{
    (void)std::fprintf(stderr, "millrace: %s\n", status.message().c_str());
    if (json)
        printLine(nlohmann::json{{"event", "error"}, {"message", status.message()}}.dump(
            -1, ' ', false, nlohmann::json::error_handler_t::replace));
    return exitCode(status);
}

Status requireFiles(const std::vector<std::string>& paths, std::string_view option)
{
    for (const std::string& path : paths) {
        std::error_code error;
        if (!std::filesystem::exists(path, error))
            return Status::error(ErrorKind::InvalidArgument,
                std::string(option) + " " + path + ": there is no such file");
    }
    return {};
}

void printLine(std::string_view line)
{
    flockfile(stdout); // records come from more than one thread, and a line stays whole
    (void)std::fwrite(line.data(), 1, line.size(), stdout);
    (void)std::fputc('\n', stdout);
    (void)std::fflush(stdout);
    funlockfile(stdout);
}

} // namespace mr::app
