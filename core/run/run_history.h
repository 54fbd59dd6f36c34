// Brings the history of a run into agreement with its run folder: the folder is the truth.
//
// Threads  Any; blocks on files.
// Errors   Io and DataCorrupt with the file; InvalidArgument from claimRunFolder().

#pragma once

#include "core/store/run_store.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>

namespace mr {

// Enters the checkpoints of both folders that are not in the history. Marks a checkpoint in the
// history as deleted if its folder is gone while its parent is there. Where the parent is gone as
// well the row stays as it is: the disk may be back tomorrow.
Status enterCheckpoints(RunStore& store, std::int64_t runId, const std::filesystem::path& runDir,
    const std::filesystem::path& saveDir);

// Enters the steps, messages and samples of the folder if the history lacks any step up to `step`.
Status enterMissingSteps(
    RunStore& store, std::int64_t runId, const std::filesystem::path& runDir, std::int64_t step);

// The whole run, as `millrace runs rebuild` does it: also one that the history does not know.
// Returns its id there.
Result<std::int64_t> rebuildHistory(RunStore& store, const std::filesystem::path& runDir);

} // namespace mr
