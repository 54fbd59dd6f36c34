// CheckpointFallback: loads the checkpoint a run goes on from, and sets damaged ones aside.
//
// The newest whole checkpoint of this run is loaded. Nothing on disk is touched until the run
// really goes on: then report() sets the damaged ones aside, marks them in the history and says so.
//
// Threads    Engine thread; before start(), the thread that opens the run.
// Ownership  Borrows context and journal.
// Errors     DataCorrupt if no checkpoint is whole: names each, its damage, and the way on.
//            Errors of memory and device, unchanged.

#pragma once

#include "core/run/run_journal.h"

#include <filesystem>
#include <functional>
#include <vector>

namespace mr {

class CheckpointFallback
{
public:
    CheckpointFallback(RunContext& run, RunJournal& journal);

    bool hasCheckpoint() const; // also one that is damaged
    // Makes the body fit a checkpoint that is about to be loaded.
    using Prepare = std::function<Status(const RunProgress&)>;
    // Into the run's body and progress.
    Status loadNewest(const Prepare& prepare = {});
    void report();

private:
    struct Broken {
        std::filesystem::path path;
        Status why;
    };

    Result<RunProgress> load(const std::filesystem::path& path, const Prepare& prepare) const;
    Status noneIsWhole(const std::vector<Broken>& broken) const;
    void report(const Broken& broken);

    RunContext& m_run;
    RunJournal& m_journal;
    std::vector<Broken> m_broken; // newer than the one that was used; not yet reported
};

} // namespace mr
