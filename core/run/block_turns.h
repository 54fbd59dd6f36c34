// BlockTurns: brings the next group of weights to the device where groups take turns.
//
// The group that was trained goes to a file first, so a run that is killed goes on from its last
// checkpoint, whichever group that had.
//
// Threads    Engine thread, between steps.
// Ownership  Borrows context and parts.
// Errors     Those of the device and of files; there is no body then.

#pragma once

#include "core/run/body_maker.h"
#include "core/run/run_journal.h"
#include "core/run/run_saver.h"

namespace mr {

class BlockTurns
{
public:
    BlockTurns(RunContext& run, RunJournal& journal, RunSaver& saver, BodyMaker& maker);

    // Before the next step; does nothing unless that trains another group. The run is asked to stop
    // where the trained group cannot be kept.
    Status takeIfDue();

private:
    RunContext& m_run;
    RunJournal& m_journal;
    RunSaver& m_saver;
    BodyMaker& m_maker;
};

} // namespace mr
