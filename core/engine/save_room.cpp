#include "core/engine/save_room.h"

#include "core/base/bytes.h"
#include "core/base/file.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

namespace mr {
namespace fs = std::filesystem;

Status roomFor(const fs::path& folder, std::uint64_t neededBytes)
{
    std::error_code error;
    if (!fs::is_directory(folder, error))
        return Status::error(ErrorKind::Io,
            folder.string() + ": the folder is gone; bring it back or choose another one");
    if (::access(folder.c_str(), W_OK | X_OK) != 0)
        return Status::error(ErrorKind::Io,
            folder.string() + ": may not be written: " + std::generic_category().message(errno));
    auto free = freeBytes(folder);
    MR_TRY(free.status());
    if (free.value() >= neededBytes)
        return {};
    return Status::error(ErrorKind::Io, folder.string() + ": " + formatBytes(neededBytes) +
                                            " are needed, " + formatBytes(free.value()) +
                                            " are free");
}

PauseReport pauseReport(bool isModel, std::int64_t step, const fs::path& folder,
    std::uint64_t neededBytes, const Status& why)
{
    std::error_code error;
    auto free = freeBytes(folder);
    const std::uint64_t bytes = free.ok() ? free.value() : 0;
    const bool isFull = fs::is_directory(folder, error) && bytes < neededBytes;
    return {isModel, step, folder, neededBytes, bytes, isFull, why.message()};
}

std::string nameOf(const PauseReport& report)
{
    return report.isModel ? "the trained model"
                          : "the checkpoint of step " + std::to_string(report.step);
}

std::string textOf(const PauseReport& report)
{
    std::string text = "Paused: ";
    if (report.isFull)
        text += "the disk is full. In " + report.folder.string() + ", " + nameOf(report) +
                " needs " + formatBytes(report.neededBytes) + "; " + formatBytes(report.freeBytes) +
                " are free.";
    else
        text += nameOf(report) + " could not be written: " + report.why + ". It needs " +
                formatBytes(report.neededBytes) + " in " + report.folder.string() + "; " +
                formatBytes(report.freeBytes) + " are free there.";
    return text + " Nothing is lost: the run waits and tries again by itself. Free some space, "
                  "choose another folder, or go on without it.";
}

std::string toJson(const PauseReport& report)
{
    const nlohmann::json json = {{"reason", report.isFull ? "full" : "unwritable"},
        {"what", report.isModel ? "model" : "checkpoint"}, {"step", report.step},
        {"folder", report.folder.string()}, {"needed_bytes", report.neededBytes},
        {"free_bytes", report.freeBytes}, {"why", report.why}};
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace mr
