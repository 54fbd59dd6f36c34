// StepLoop: one step of a run after the other, each recorded and judged, and evaluations between
// them.
//
//     BatchStream -> PlanSequence (buildPlan, checkPlan) -> StepExecutor -> StallLedger -> Recorder
//
// Threads    Engine thread.
// Ownership  Owns the batch stream; borrows context, journal, saver and outcome.
// Errors     The first failure of data, plan, device or disk, unchanged; Internal if gradients stay
//            infinite.

#pragma once

#include "core/answer/evaluator.h"
#include "core/data/batch_stream.h"
#include "core/run/outcome_watch.h"
#include "core/run/run_saver.h"
#include "core/telemetry/stall_ledger.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mr {

class StepLoop
{
public:
    StepLoop(RunContext& run, RunJournal& journal, RunSaver& saver, OutcomeWatch& outcome);

    // Batches from the last step that was done.
    void startBatches();
    void closeBatches() noexcept;

    // The run was opened, from a checkpoint that may have been written before its evaluation.
    void noteOpened();
    // The run went back to a checkpoint, perhaps of an earlier step.
    void noteReopened();

    Status trainNext();
    // After the last step that was done, once.
    Status evaluateIfDue();

    std::int64_t completed() const noexcept { return m_completed; } // steps of this life

private:
    Status planStep(StepIndex step);
    Result<StepResult> runPlan(StepIndex step);
    void finishStep(StepIndex step);
    void skipStep(StepIndex step, std::int64_t beginNs);
    void recordStep(StepIndex step, const StepResult& result, const StepTimes& times);
    void recordSpans(StepIndex step, const StepTimes& times);
    Status judgeStep(const StepResult& result);
    Status evaluateNow();
    Status scoreHeldOutAnswers();

    RunContext& m_run;
    RunJournal& m_journal;
    RunSaver& m_saver;
    OutcomeWatch& m_outcome;
    std::unique_ptr<BatchStream> m_batches;
    StepBatch m_batch;
    StepPlan m_evalPlan;
    std::optional<StallLedger> m_ledger;
    std::size_t m_mostTasks = 0;
    std::vector<TraceEvent> m_stalls;
    StepIndex m_evaluatedStep = -1; // or passed, where no evaluation was due
    std::int64_t m_completed = 0;
};

} // namespace mr
