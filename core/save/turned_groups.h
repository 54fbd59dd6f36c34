// Groups of weights between their turns (RunSpec::train): in a file of the run folder once they
// were trained, until then in the model that the run began with.
//
//     <run>/blocks/step-00000040-group-3.safetensors
//
// holds the F32 master of a group after that step. In BF16 it is in halves: `high`, which ops read,
// and `low`; in F32 it is `weights`. A file never changes. A checkpoint names the files that it
// goes on from, and those that none names are removed.
//
// Threads  Engine thread, between steps; blocks on files.
// Errors   Io and DataCorrupt name the file.

#pragma once

#include "core/model/base_files.h"
#include "core/model/master.h"
#include "core/save/run_progress.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace mr {

// Folders of the run and its checkpoints: where it saves to now, then its own.
using RunFolders = std::vector<std::filesystem::path>;

// A file of one group, all of it, and its reader, which is asked for that group alone.
Status writeGroup(const std::filesystem::path& file, const MasterRange& group, DType compute,
    MasterReader& master);
Result<std::unique_ptr<MasterReader>> openGroup(const std::filesystem::path& file);

// Writes the group's master as it is after `step`, below folders.front().
Result<TurnedGroup> writeTurned(const RunFolders& folders, StepIndex step, const MasterRange& group,
    DType compute, MasterReader& master);

// Do all files hold the bytes that were written? Reads them.
Status verifyTurned(const RunFolders& folders, const std::vector<TurnedGroup>& turned);

// The whole model: groups that had a turn from their files, the others from `model`, which outlives
// the reader.
Result<std::unique_ptr<MasterReader>> openTurned(
    const RunFolders& folders, const std::vector<TurnedGroup>& turned, MasterReader& model);

// Blocks that had a turn are read from their files, in place of those that `base` names.
Status takeTurned(const RunFolders& folders, const std::vector<TurnedGroup>& turned, DType compute,
    BaseFiles& base);

// Removes files that neither `now` nor a checkpoint names, and what a crash left half written.
// Where a checkpoint cannot be read, nothing is removed.
void removeUnusedTurned(const RunFolders& folders, const std::vector<TurnedGroup>& now);

} // namespace mr
