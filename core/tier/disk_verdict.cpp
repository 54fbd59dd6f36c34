#include "core/tier/disk_verdict.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace mr {
namespace {

bool isMediaError(std::int64_t result) noexcept
{
    return result == -EIO || result == -ENODATA || result == -EREMOTEIO;
}

std::string addressWords(const void* memory)
{
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%p", memory);
    return text.data();
}

// Explains an error to a person.
std::string meaningOf(const DiskScene& scene, std::int64_t result)
{
    if (result == -EINVAL)
        return "the request is not aligned or not supported (memory at " +
               addressWords(scene.memory) + "). Please report this";
    if (result == -EFAULT)
        return "its memory (" + addressWords(scene.memory) +
               ") is not what was registered. Please report this";
    if (result == -ENOSPC || result == -EDQUOT)
        return "the disk is full, although the file had been written whole: the file system or "
               "the volume below it gives out space late. Choose a folder on ext4 or XFS";
    if (result == -EAGAIN)
        return fmt::format("the system was too busy {} times", kDiskBusyTries + 1);
    if (isMediaError(result))
        return "the drive or its connection failed. Look at dmesg and smartctl -a, and choose a "
               "folder on another disk";
    return "the file system refused";
}

} // namespace

DiskVerdict judgeCompletion(
    DiskOp op, std::uint32_t asked, std::int64_t result, DiskAttempts& attempts) noexcept
{
    if (result == asked)
        return {DiskAction::Done, asked};
    if (result > 0 && result < asked) {
        const auto whole = static_cast<std::uint32_t>(
            static_cast<std::uint64_t>(result) / kDiskPageBytes * kDiskPageBytes);
        // No page of progress: the same again would come back the same, for ever.
        return whole == 0 ? DiskVerdict{} : DiskVerdict{DiskAction::Rest, whole};
    }
    if (result == -EAGAIN)
        return {++attempts.busy <= kDiskBusyTries ? DiskAction::AgainLater : DiskAction::Fail, 0};
    if (result == -EINTR)
        return {
            ++attempts.interrupted <= kDiskInterruptTries ? DiskAction::Again : DiskAction::Fail,
            0};
    if (isMediaError(result) && op == DiskOp::Read)
        return {++attempts.media <= kDiskMediaTries ? DiskAction::Again : DiskAction::Fail, 0};
    return {}; // 0 is past the end; more than asked cannot be; the rest has no cure
}

DiskScene DiskNames::scene(
    DiskOp op, DiskTileId tile, std::uint64_t at, std::uint64_t bytes, const void* memory) const
{
    const DiskTile& entry = layout->tiles[static_cast<std::size_t>(tile.value)];
    return {op, entry.name, paths[static_cast<std::size_t>(entry.file)], entry.offset + at, bytes,
        memory};
}

std::string DiskNames::words(DiskOp op, DiskTileId tile) const
{
    return diskSceneWords(
        scene(op, tile, 0, layout->tiles[static_cast<std::size_t>(tile.value)].bytes, nullptr));
}

std::string diskSceneWords(const DiskScene& scene)
{
    return fmt::format("{} of tile '{}' at byte {} of {} ({} bytes)",
        std::string(scene.op == DiskOp::Read ? "read" : "write"), scene.tile, scene.offset,
        scene.path, scene.bytes);
}

std::string diskWayOut()
{
    return " Training state of this run was on that disk and is lost with it; checkpoints are not "
           "touched. Resume from the last one.";
}

Status diskFailure(const DiskScene& scene, std::int64_t result)
{
    const std::string where = "disk " + diskSceneWords(scene) + " failed: ";
    if (result > static_cast<std::int64_t>(scene.bytes))
        return Status::error(ErrorKind::Internal,
            fmt::format("{}the system says that it moved {}.{}", where, result, diskWayOut()));
    if (result >= 0)
        return Status::error(
            ErrorKind::Io, where +
                               (result == 0 ? std::string("the file ends before it")
                                            : fmt::format("only {} bytes were moved", result)) +
                               "." + diskWayOut());
    const bool ours = result == -EINVAL || result == -EFAULT;
    return Status::error(ours ? ErrorKind::Internal : ErrorKind::Io,
        where + std::generic_category().message(static_cast<int>(-result)) + ": " +
            meaningOf(scene, result) + "." + diskWayOut());
}

} // namespace mr
