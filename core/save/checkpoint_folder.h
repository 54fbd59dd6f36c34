// The checkpoints of a run on disk: their list, the best one, and the ones to keep.
//
//     <run>/checkpoints/
//         step-00000300/         a checkpoint
//         .step-00000310/        being written, or removed; if a crash leaves it, the next write
//                                removes it
//         broken-step-00000290/  was damaged when the run was resumed; goes when a newer whole one
//                                is there
//         other-step-00000280/   lay there, but is not of this run: never removed
//
// A name is given and taken by a rename, so no crash leaves half a checkpoint under it.
//
// Threads  Engine thread, between steps; functions that only read: any. Blocks on files.
// Errors   Io with the folder. A folder that cannot be listed is one without checkpoints.

#pragma once

#include "core/save/run_progress.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace mr {

struct CheckpointInfo {
    std::filesystem::path path;
    std::int64_t step = 0;
    double evalLoss = std::numeric_limits<double>::quiet_NaN(); // at that step; NaN: none, or it
                                                                // cannot be read
    bool isBest = false; // the lowest; of equal ones the newest
};

std::string checkpointName(std::int64_t step); // "step-00000300"

// Complete checkpoint folders, newest first. `saveDir`: where the run writes them now, if that is
// another folder (RunSpec).
std::vector<std::filesystem::path> listCheckpoints(
    const std::filesystem::path& runDir, const std::filesystem::path& saveDir = {});

// All folders with the name of a checkpoint, newest first, also without a manifest.
std::vector<std::filesystem::path> namedCheckpoints(
    const std::filesystem::path& runDir, const std::filesystem::path& saveDir = {});

// Checkpoints that were set aside, ascending by path.
std::vector<std::filesystem::path> asideCheckpoints(
    const std::filesystem::path& runDir, const std::filesystem::path& saveDir = {});

// The numbers of a checkpoint; its other files are not looked at.
Result<RunProgress> readProgress(const std::filesystem::path& checkpoint);

// The complete ones, newest first, and the best of them. Tensors are not read.
std::vector<CheckpointInfo> describeCheckpoints(
    const std::filesystem::path& runDir, const std::filesystem::path& saveDir = {});

// Evaluation loss of the best checkpoint; NaN: none has an evaluation.
double bestEvalLoss(const std::filesystem::path& runDir, const std::filesystem::path& saveDir = {});

// Gives a sealed folder its name. A checkpoint of that name is replaced at once if it is of the
// same run, and else set aside.
Status installCheckpoint(const std::filesystem::path& sealed, const std::filesystem::path& final);

enum class SetAside : std::uint8_t { Broken, Other };

// Returns where the checkpoint lies now. A folder with other things in it than a checkpoint has
// counts as Other.
Result<std::filesystem::path> setAside(const std::filesystem::path& checkpoint, SetAside why);

struct Pruned {
    std::vector<std::filesystem::path> older;  // were complete
    std::vector<std::filesystem::path> broken; // had been set aside
};

// Removes all but the newest `keep` and the best, broken ones that a newer whole one replaces, and
// leftovers. Comes after the newest was written.
Pruned pruneCheckpoints(const std::filesystem::path& runDir, std::int64_t keep,
    const std::filesystem::path& saveDir = {});

// Removes checkpoints that a crash left half written or half removed.
void removeLeftovers(
    const std::filesystem::path& runDir, const std::filesystem::path& saveDir = {});

} // namespace mr
