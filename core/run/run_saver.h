// RunSaver: saves checkpoints when they are due (by steps, by time, at the best evaluation) and the
// trained model at the end.
//
// Threads    Engine thread. After the run has ended: writer().
// Ownership  Owns the writer; borrows context and journal.
// Errors     Those of PausingWriter::save(): saveCheckpoint() gives no error for a checkpoint that
//            could not be written; ask isSaved().

#pragma once

#include "core/run/pausing_writer.h"

namespace mr {

class RunSaver
{
public:
    RunSaver(RunContext& run, RunJournal& journal);

    // The first minute of checkpoints by time begins now.
    void startClock();

    // Between two steps; that of the last one is always written.
    bool isCheckpointDue() const;
    Status saveCheckpoint(IfUnwritable then);
    // After a newer one was written.
    void prune();
    Status exportModel();
    // The group of weights that is trained, before another one takes its turn. False: it could not
    // be written, and the run was asked to stop or to go on without.
    Result<bool> saveTurn();

    // The newest checkpoint is of the step the run has come to.
    bool isSaved() const noexcept { return m_savedStep == m_run.step(); }
    // The run is where its newest checkpoint is, or, false, where its model is.
    void noteLoaded(bool fromCheckpoint) noexcept;
    // The step was evaluated after it was saved: its checkpoint lacks that.
    void forgetSaved() noexcept { m_savedStep = -1; }

    PausingWriter& writer() noexcept { return m_writer; }
    const PausingWriter& writer() const noexcept { return m_writer; }

private:
    bool isDueByTime() const;
    bool isBestSoFar() const;
    std::int64_t clockNs() const;
    Status writeCheckpointNow();
    Status writeModelNow();
    Status writeTurnNow();
    Status saveModelInTurns(MasterReader& trained);

    RunContext& m_run;
    RunJournal& m_journal;
    PausingWriter m_writer;
    StepIndex m_savedStep = -1;
    std::int64_t m_checkpointNs = 0; // when the last one was written or tried
};

} // namespace mr
