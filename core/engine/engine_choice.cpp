// What a run chooses again while it runs, and the exchange of its plan that follows.
//
// Between two steps the run is saved, its body torn down and made again by the new plan, and
// training goes on from the checkpoint with the same bits. What is really used is written to the
// run's record, so that resuming uses it too, and the choice is an event in the log.

#include "core/engine/checkpoint_size.h"
#include "core/engine/engine.h"
#include "core/engine/replan.h"
#include "core/engine/share_choice.h"

#include <utility>

namespace mr {

// After a step. Nothing is chosen for a run that is about to end: who resumes it will.
Status Engine::chooseWhileRunning()
{
    const StepIndex done = m_progress.step;
    if (done == 0 || done >= m_setup.spec.steps || m_stopRequested)
        return {};
    return isShareOpen(m_setup) && m_watch.isDue(m_savedStep == done) ? lookAtShare() : Status();
}

Status Engine::lookAtShare()
{
    const StepIndex done = m_progress.step;
    Feedback measured = m_watch.look(m_setup.rates);
    if (m_hooks.onRates)
        m_hooks.onRates(measured);
    const double cost = m_watch.exchangeSeconds(m_savedStep == done, checkpointBytes(m_setup));
    auto decision = decideShare(m_setup, measured, m_setup.spec.steps - done, cost);
    MR_TRY(decision.status());
    if (!decision.value().isWorthIt)
        return {};
    auto next = withShare(m_setup, decision.value().shareNew, measured);
    MR_TRY(next.status());
    auto exchanged = exchange(std::move(next).value());
    MR_TRY(exchanged.status());
    if (exchanged.value())
        m_recorder->message(EventLevel::Info, "device_share_chosen", m_progress.step, activeMs(),
            shareWords(decision.value(), measured));
    return {};
}

// Goes on as `next` says, from a checkpoint of the last step. False: that could not be written, and
// all is as it was.
Result<bool> Engine::exchange(RunSetup next)
{
    const StepIndex reached = m_progress.step;
    if (m_savedStep != reached)
        MR_TRY(saveCheckpoint());
    if (m_savedStep != reached)
        return false;
    tearDown();
    m_setup = std::move(next);
    MR_TRY(reopen(reached));
    return true;
}

} // namespace mr
