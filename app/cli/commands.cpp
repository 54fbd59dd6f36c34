#include "app/cli/commands.h"

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
    say(status.message());
    if (json)
        printJson({{"event", "error"}, {"message", status.message()}});
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

} // namespace mr::app
