// What a run chooses late or again, while it runs, and the exchange of its plan that follows.
//
// Between two steps the run is saved, its body torn down and made again by the new plan, and
// training goes on from the checkpoint with the same bits. What is really used is written to the
// run's record, so that resuming uses it too, and the choice is an event in the log.

#include "core/choose/checkpoint_size.h"
#include "core/choose/replan.h"
#include "core/choose/share_choice.h"
#include "core/plan/magnitude_rule.h"
#include "core/run/engine.h"

#include <array>
#include <cstdio>
#include <utility>
#include <vector>

namespace mr {
namespace {

// Of all weights whose columns are split, by the running energies on the device and the columns it
// owns now.
Result<std::vector<ColumnMeans>> columnMeans(StepExecutor& executor, WindowMemory& window)
{
    std::vector<ColumnMeans> means;
    std::vector<float> energies;
    for (std::int32_t g = 0; g < window.groupCount(); ++g) {
        const TensorView from = window.runningEnergies(GroupId{g});
        energies.resize(static_cast<std::size_t>(from.count()));
        MR_TRY(executor.copyBlocking(
            reinterpret_cast<std::byte*>(energies.data()), from.data, from.bytes(), false));
        for (const WeightCut& weight : window.cut(GroupId{g}).weights) {
            if (!weight.isMovable())
                continue;
            const auto ofWeight = std::span<const float>(energies).subspan(
                static_cast<std::size_t>(weight.listFirst), static_cast<std::size_t>(weight.cols));
            means.push_back(meansOf(ofWeight, window.urgentList(GroupId{g}, weight), weight.rows));
        }
    }
    return means;
}

std::string intervalWords(const IntervalChoice& choice)
{
    std::array<char, 400> text{};
    (void)std::snprintf(text.data(), text.size(),
        "The interval is %d from here on (interval=magnitude): %s for %lld of %lld weights "
        "the gradients of so many steps of the other columns reach those of the urgent ones; mean "
        "|g| %.3g and %.3g.",
        choice.steps, choice.isAgreed() ? "chosen because" : "the most there may be, although only",
        static_cast<long long>(choice.votes), static_cast<long long>(choice.weights),
        choice.means.complement, choice.means.urgent);
    return text.data();
}

} // namespace

// After a step. Nothing is chosen for a run that is about to end: who resumes it will.
Status Engine::chooseWhileRunning()
{
    const StepIndex done = m_progress.step;
    if (done == 0 || done >= m_setup.spec.steps || m_stopRequested)
        return {};
    const OffloadPolicy& policy = m_setup.policy;
    if (policy.intervalByMagnitude)
        return done < policy.clock->warmup() ? Status() : chooseIntervalNow();
    return isShareOpen(m_setup) && m_watch.isDue(m_savedStep == done) ? lookAtShare() : Status();
}

// By what the checkpoint of this step has, so a run that is resumed here chooses the same.
Status Engine::chooseIntervalNow()
{
    auto means = columnMeans(m_body->executor(), *m_body->memory().window);
    MR_TRY(means.status());
    const IntervalChoice choice = chooseInterval(means.value());
    PolicyNumbers numbers = m_setup.numbers;
    numbers.interval = {WindowInterval::From::User, choice.steps};
    auto next = withNumbers(m_setup, numbers, m_setup.rates);
    MR_TRY(next.status());
    auto exchanged = exchange(std::move(next).value(), IfUnwritable::Pause);
    MR_TRY(exchanged.status());
    if (!exchanged.value() && m_stopRequested)
        return {}; // chosen again by who resumes it
    if (!exchanged.value())
        return Status::error(
            ErrorKind::Io, "interval=magnitude: windows of " + std::to_string(choice.steps) +
                               " steps begin from a checkpoint, and that of step " +
                               std::to_string(m_progress.step) +
                               " could not be written; free some space and resume the run");
    m_recorder->message(
        EventLevel::Info, "interval_chosen", m_progress.step, activeMs(), intervalWords(choice));
    return {};
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
    auto exchanged = exchange(std::move(next).value(), IfUnwritable::Report);
    MR_TRY(exchanged.status());
    if (exchanged.value())
        m_recorder->message(EventLevel::Info, "device_share_chosen", m_progress.step, activeMs(),
            shareWords(decision.value(), measured));
    return {};
}

// Goes on as `next` says, from a checkpoint of the last step. False: that could not be written, and
// all is as it was.
Result<bool> Engine::exchange(RunSetup next, IfUnwritable then)
{
    const StepIndex reached = m_progress.step;
    if (m_savedStep != reached)
        MR_TRY(saveCheckpoint(then));
    if (m_savedStep != reached)
        return false;
    tearDown();
    m_setup = std::move(next);
    MR_TRY(reopen(reached));
    return true;
}

} // namespace mr
