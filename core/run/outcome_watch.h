// OutcomeWatch: judges a run by its own losses: a jump while it trains, a loss that is not finite,
// and whether the trained model is better than the one the run began with.
//
// Threads    Engine thread; outcome() also after the run has ended.
// Ownership  Borrows context and journal.
// Errors     Internal where a loss or gradient is not finite, with settings to try.

#pragma once

#include "core/run/loss_watch.h"
#include "core/run/run_journal.h"

#include <millrace/run_outcome.h>

#include <string>

namespace mr {

class OutcomeWatch
{
public:
    OutcomeWatch(RunContext& run, RunJournal& journal);

    void noteEvaluation(StepIndex step, double loss);
    // Reads the evaluations of a resumed run: an earlier life measured its base and its best one. A
    // history without them leaves the run without a verdict.
    void readEvaluations();
    // Warns where a spike begins with this loss of a step.
    void watchLoss(StepIndex step, double loss);

    Status notFinite(const std::string& subject) const;
    // After the last step, before it is saved: an older checkpoint must not be pruned for weights
    // with a loss that is not finite.
    Status checkLastLoss() const;
    RunOutcome outcome() const { return judge(m_evaluations); }
    // Warns where the run made the model worse.
    void report();

private:
    RunContext& m_run;
    RunJournal& m_journal;
    LossWatch m_lossWatch;
    Evaluations m_evaluations; // from earlier lives, too
};

} // namespace mr
