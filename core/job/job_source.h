// JobSource: a run and its last checkpoint, opened to be continued by another program.
//
// Threads  The thread that opens it; blocks on files. Reading and tokenising the data
//          starts threads of its own.
// Errors   InvalidArgument: no run, no checkpoint, other data than the run began with, or a run
//          that PyTorch cannot continue, with the way out. DataCorrupt names a damaged file.

#pragma once

#include "core/choose/run_setup.h"
#include "core/run/run_data.h"
#include "core/save/run_progress.h"
#include "core/store/run_store.h"

#include <millrace/status.h>

#include <filesystem>

namespace mr {

struct JobSource {
    std::filesystem::path checkpoint;
    NewRun record;
    RunSetup setup;
    RunProgress progress;
    RunData data;

    const RunSpec& spec() const noexcept { return setup.spec; }
    std::int64_t stepsLeft() const noexcept { return setup.spec.steps - progress.step; }
};

// `run` is the folder of a run.
Result<JobSource> openJobSource(const std::filesystem::path& run);

} // namespace mr
