#include "core/choose/share_tuner.h"

namespace mr {
namespace {

// Written, hashed and synced, or read and verified.
constexpr double kBytesPerSecond = 200e6;

} // namespace

void ShareTuner::addStep(
    const StepPlan& plan, std::span<const Interval> tasks, const RateReading& how)
{
    if (m_steps++ > 0)
        m_estimator.read(plan, tasks, how);
}

void ShareTuner::timed(double seconds) noexcept
{
    if (m_steps < 2)
        return;
    m_timedSeconds += seconds;
    ++m_timedSteps;
}

double ShareTuner::meanSeconds() const noexcept
{
    return m_timedSteps > 0 ? m_timedSeconds / m_timedSteps : 0.0;
}

void ShareTuner::reopened(double seconds) noexcept
{
    m_reopenSeconds = seconds;
    m_steps = 0;
    m_timedSteps = 0;
    m_timedSeconds = 0.0;
    m_estimator.clear();
}

bool ShareTuner::isDue(bool isSaved) const noexcept
{
    if (m_estimator.steps() < kLeastSteps)
        return false;
    return isSaved || (!m_hasLooked && m_steps >= kFirstLook);
}

Feedback ShareTuner::look(const Feedback& known)
{
    const Feedback rates = m_estimator.rates(known);
    m_estimator.clear();
    m_hasLooked = true;
    return rates;
}

double ShareTuner::exchangeSeconds(bool isSaved, std::uint64_t checkpointBytes) const noexcept
{
    const double assumed = static_cast<double>(checkpointBytes) / kBytesPerSecond;
    const double save = m_saveSeconds > 0.0 ? m_saveSeconds : assumed;
    return (isSaved ? 0.0 : save) + (m_reopenSeconds > 0.0 ? m_reopenSeconds : assumed);
}

} // namespace mr
