#include "models/run_range.h"

#include "text/units.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

constexpr double kFewestSteps = 10.0;
constexpr double kFewestSeconds = 10.0;
constexpr double kEndRoom = 0.008; // share of the range, at each end
constexpr double kMsPerSecond = 1e3;
constexpr double kUsPerSecond = 1e6;

double endSeconds(const StepRow& row)
{
    return static_cast<double>(row.timeMs) / kMsPerSecond;
}

double beginSeconds(const StepRow& row)
{
    return endSeconds(row) - static_cast<double>(row.wallUs) / kUsPerSecond;
}

} // namespace

RunRange::Ends RunRange::seconds(const StepSeries& steps, std::int64_t measuredMs) const
{
    const std::size_t first = steps.lowerBound(m_steps.lower);
    const std::size_t end = steps.lowerBound(m_steps.upper);
    if (!m_all && first < end)
        return {beginSeconds(steps[first]), endSeconds(steps[end - 1])};
    const double last = steps.empty() ? 0.0 : endSeconds(steps.back());
    return {0.0, std::max({static_cast<double>(measuredMs) / kMsPerSecond, last, kFewestSeconds})};
}

void RunRange::follow(const StepSeries& steps, const std::vector<ScalarRow>& evaluations)
{
    if (!m_all)
        return;
    double first = steps.empty() ? 1.0 : static_cast<double>(steps[0].step);
    double last = steps.empty() ? 1.0 : static_cast<double>(steps.back().step);
    if (!evaluations.empty()) {
        first = std::min(first, static_cast<double>(evaluations.front().step));
        last = std::max(last, static_cast<double>(evaluations.back().step));
    }
    // Half a step for the bars, and room for the markers at both ends.
    const double room = std::max(0.5, kEndRoom * (last - first));
    m_steps.lower = first - room;
    m_steps.upper = std::max(last + room, m_steps.lower + kFewestSteps);
}

void RunRange::pickSteps(const StepSeries& steps, Ends picked)
{
    if (steps.empty())
        return;
    const double first = static_cast<double>(steps[0].step) - 0.5;
    const double last = static_cast<double>(steps.back().step) + 0.5;
    m_steps = {std::max(picked.lower, first), std::min(picked.upper, last)};
    m_all =
        (m_steps.lower <= first && m_steps.upper >= last) || m_steps.upper - m_steps.lower < 1.0;
}

void RunRange::pickSeconds(const StepSeries& steps, Ends picked)
{
    if (!steps.empty())
        pickSteps(steps,
            {stepAtSeconds(steps, picked.lower) - 0.5, stepAtSeconds(steps, picked.upper) + 0.5});
}

double RunRange::secondsOfStep(const StepSeries& steps, double step)
{
    const std::size_t row = std::isnan(step) ? steps.size() : steps.lowerBound(step);
    return row < steps.size() ? endSeconds(steps[row]) : kNone;
}

double RunRange::stepAtSeconds(const StepSeries& steps, double seconds)
{
    if (steps.empty() || std::isnan(seconds))
        return kNone;
    const std::size_t row = std::min(steps.lowerBoundMs(seconds * kMsPerSecond), steps.size() - 1);
    return static_cast<double>(steps[row].step);
}

} // namespace mr::ui
