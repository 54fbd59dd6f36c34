// Judges completions, for every means of I/O: one table of actions, and the words for Fail.
//
// A partial success is no success: other programs have lost training state because nobody checked
// for lost tails (reference: ssd_offload, 3.4).
//
// Threads  Pure.
// Units    Bytes.

#pragma once

#include "core/tier/disk_io.h"
#include "core/tier/disk_layout.h"

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mr {

enum class DiskAction : std::uint8_t {
    Done,
    Rest,       // moved in part: ask for the rest
    Again,      // ask at once for the same
    AgainLater, // ask after a pause for the same, whole: part of it may have happened
    Fail,
};

// Counts of the errors of one request, over all its attempts.
struct DiskAttempts {
    int busy = 0;        // -EAGAIN
    int interrupted = 0; // -EINTR
    int media = 0;       // -EIO and its like
};

inline constexpr int kDiskBusyTries = 8;
inline constexpr int kDiskInterruptTries = 1000; // no end would be a hang that nobody explains
inline constexpr int kDiskMediaTries = 1;        // reads only

struct DiskVerdict {
    DiskAction action = DiskAction::Fail;
    std::uint32_t moved = 0; // Rest: bytes that are done, whole pages
};

// Counts the attempt in `attempts`.
DiskVerdict judgeCompletion(
    DiskOp op, std::uint32_t asked, std::int64_t result, DiskAttempts& attempts) noexcept;

// Where it happened, for the words.
struct DiskScene {
    DiskOp op = DiskOp::Read;
    std::string tile;
    std::string path;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    const void* memory = nullptr;
};

// Makes scenes: kept apart so that words are built only where something went wrong.
struct DiskNames {
    const DiskLayout* layout = nullptr; // outlives this
    std::vector<std::string> paths;     // by file

    // The scene of `bytes` at `at` within the tile.
    DiskScene scene(DiskOp op, DiskTileId tile, std::uint64_t at, std::uint64_t bytes,
        const void* memory) const;
    std::string words(DiskOp op, DiskTileId tile) const; // for the whole tile
};

// Internal for our own mistakes, else Io. Precondition: the verdict was Fail.
Status diskFailure(const DiskScene& scene, std::int64_t result);

// "read of tile 'x' at byte 4096 of /a/b (1048576 bytes)".
std::string diskSceneWords(const DiskScene& scene);
// Last words of every failure of the disk: the loss, the checkpoints that are safe, and the way on.
std::string diskWayOut();

} // namespace mr
