#include "core/run/late_choice.h"

#include "core/base/clock.h"
#include "core/choose/checkpoint_size.h"
#include "core/choose/rate_cache.h"
#include "core/choose/replan.h"
#include "core/choose/share_choice.h"
#include "core/plan/magnitude_rule.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <utility>
#include <vector>

namespace mr {
namespace {

// One entry for each weight that is split by columns, from the running energies on the device and
// the columns it owns now.
Result<std::vector<ColumnMeans>> columnMeans(StepExecutor& executor, WindowMemory& window)
{
    std::vector<ColumnMeans> means;
    std::vector<float> energies;
    for (std::int32_t g = 0; g < window.groupCount(); ++g) {
        const TensorView from = window.runningEnergies(GroupId{g});
        energies.resize(static_cast<std::size_t>(from.count()));
        MR_TRY(executor.copier().toHost(std::as_writable_bytes(std::span(energies)), from.data));
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

LateChoice::LateChoice(RunContext& run, RunJournal& journal, RunSaver& saver, Replanner& replanner)
    : m_run(run)
    , m_journal(journal)
    , m_saver(saver)
    , m_replanner(replanner)
{
}

void LateChoice::begin()
{
    (void)m_load.read(m_run.startNs); // the load before does not count
}

Status LateChoice::chooseIfDue()
{
    const StepIndex done = m_run.progress.step;
    if (done == 0 || done >= m_run.setup.spec.steps || m_run.stopRequested)
        return {};
    const OffloadPolicy& policy = m_run.setup.policy;
    if (policy.intervalByMagnitude)
        return done < policy.clock->warmup() ? Status() : chooseInterval();
    return isShareOpen(m_run.setup) && m_run.watch.isDue(m_saver.isSaved()) ? lookAtShare()
                                                                            : Status();
}

// By data that the checkpoint of this step has, so a run that is resumed here chooses the same.
Status LateChoice::chooseInterval()
{
    MR_ASSIGN(auto means, columnMeans(m_run.body->executor(), *m_run.body->memory().window));
    const IntervalChoice choice = mr::chooseInterval(means);
    PolicyNumbers numbers = m_run.setup.numbers;
    numbers.interval = {WindowInterval::From::User, choice.steps};
    MR_ASSIGN(auto next, withNumbers(m_run.setup, numbers, m_run.setup.rates));
    MR_ASSIGN(auto exchanged, m_replanner.exchange(std::move(next), IfUnwritable::Pause));
    if (!exchanged && m_run.stopRequested)
        return {}; // the run that resumes it chooses again
    if (!exchanged)
        return Status::error(ErrorKind::Io,
            fmt::format("interval=magnitude: windows of {} steps begin from a checkpoint, and that "
                        "of step {} could not be written; free some space and resume the run",
                choice.steps, m_run.progress.step));
    m_journal.message(EventLevel::Info, "interval_chosen", intervalWords(choice));
    return {};
}

Status LateChoice::lookAtShare()
{
    const StepIndex done = m_run.progress.step;
    Feedback measured = m_run.watch.look(m_run.setup.rates);
    if (m_run.hooks.onRates)
        m_run.hooks.onRates(measured);
    const double cost =
        m_run.watch.exchangeSeconds(m_saver.isSaved(), checkpointBytes(m_run.setup));
    MR_ASSIGN(
        auto decision, decideShare(m_run.setup, measured, m_run.setup.spec.steps - done, cost));
    if (!decision.isWorthIt)
        return {};
    MR_ASSIGN(auto next, withShare(m_run.setup, decision.shareNew, measured));
    MR_ASSIGN(auto exchanged, m_replanner.exchange(std::move(next), IfUnwritable::Report));
    if (exchanged)
        m_journal.message(EventLevel::Info, "device_share_chosen", shareWords(decision, measured));
    return {};
}

void LateChoice::learnRates()
{
    const HostNumbers load = m_load.read(nowNs());
    RunTruth truth{m_run.watch.meanSeconds(), m_run.watch.timedSteps(), 100.0};
    if (load.cpuPercent && load.processPercent)
        truth.othersPercent = *load.cpuPercent - *load.processPercent;
    if (m_run.hooks.onTruth)
        m_run.hooks.onTruth(truth);
    if (!m_journal.isStarted() || m_run.watch.measuredSteps() == 0 ||
        !isForecastWrong(m_run.setup, truth))
        return;
    if (correctRates(m_run.setup, m_run.watch.measured(m_run.setup.rates), truth.othersPercent,
            RateCache::defaultPath()))
        m_journal.message(EventLevel::Info, "rates_corrected", correctionWords(m_run.setup, truth));
}

} // namespace mr
