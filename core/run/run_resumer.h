// RunResumer: how a run goes on in the folder of an earlier life.
//
// The folder is the truth: a loss of power, a kill between two files, or another history leave the
// history behind it, so missing rows are entered from the folder.
//
// Threads    The thread that opens the run.
// Ownership  Borrows context and parts.
// Errors     InvalidArgument: no run folder, other data, a run that is done, a folder for
//            checkpoints that is not this run's. DataCorrupt: no checkpoint is whole. As RunOpener.

#pragma once

#include "core/run/run_opener.h"

#include <filesystem>

namespace mr {

class RunResumer
{
public:
    RunResumer(RunContext& run, RunJournal& journal, RunOpener& opener, Replanner& replanner,
        CheckpointFallback& fallback, OutcomeWatch& outcome);

    Status resume(const std::filesystem::path& runDir);

private:
    Result<RunSpec> claim(const std::filesystem::path& runDir);
    Status findSaveDir(const RunSpec& spec);
    Status fitToBudget();
    Status startAgain();
    Status refuseOtherData() const;
    Status refuseOtherBase() const;
    Status refuseIfDone() const;
    Status enterInHistory();

    RunContext& m_run;
    RunJournal& m_journal;
    RunOpener& m_opener;
    Replanner& m_replanner;
    CheckpointFallback& m_fallback;
    OutcomeWatch& m_outcome;
};

} // namespace mr
