#include "core/save/save_room.h"

#include "core/base/bytes.h"
#include "core/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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

SpaceLack lackOfSpace(const fs::path& folder, std::uint64_t bytes)
{
    const auto lack = [](int error) {
        return error == EDQUOT   ? SpaceLack::Quota
               : error == ENOSPC ? SpaceLack::Disk
                                 : SpaceLack::None; // or a file system that cannot say
    };
    std::error_code error;
    const fs::path checkpoints = folder / "checkpoints"; // may have a quota of its own
    const fs::path file = (fs::is_directory(checkpoints, error) ? checkpoints : folder) / ".room";
    (void)::unlink(file.c_str()); // left by a killed run; a link in its place is not followed
    const int descriptor = ::open(file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return lack(errno);
    const auto length = static_cast<off_t>(std::max<std::uint64_t>(bytes, 1));
    const SpaceLack found =
        ::fallocate(descriptor, 0, 0, length) == 0 ? SpaceLack::None : lack(errno);
    (void)::close(descriptor);
    (void)::unlink(file.c_str());
    return found;
}

PauseReport pauseReport(bool isModel, std::int64_t step, const fs::path& folder,
    std::uint64_t neededBytes, const Status& why)
{
    std::error_code error;
    auto free = freeBytes(folder);
    const std::uint64_t bytes = free.ok() ? free.value() : 0;
    PauseReport report{isModel, step, folder, neededBytes, bytes, false, false, why.message()};
    if (!fs::is_directory(folder, error))
        return report;
    const bool isShort = bytes < neededBytes;
    const SpaceLack lack = isShort ? SpaceLack::Disk : lackOfSpace(folder, neededBytes);
    report.isFull = lack != SpaceLack::None;
    report.isQuota = lack == SpaceLack::Quota;
    return report;
}

std::string nameOf(const PauseReport& report)
{
    return report.isModel ? "the trained model"
                          : fmt::format("the checkpoint of step {}", report.step);
}

std::string textOf(const PauseReport& report)
{
    std::string text = "Paused: ";
    if (report.isFull && report.freeBytes >= report.neededBytes) // but not for this user
        text += std::string("the disk is full") +
                (report.isQuota ? " for this user, whose quota is reached: " : ": ") +
                nameOf(report) + " could not be written: " + report.why + ". It needs " +
                formatBytes(report.neededBytes) + " in " + report.folder.string() + ".";
    else if (report.isFull)
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
        {"free_bytes", report.freeBytes}, {"quota", report.isQuota}, {"why", report.why}};
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace mr
