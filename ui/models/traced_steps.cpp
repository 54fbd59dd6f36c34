#include "models/traced_steps.h"

#include <algorithm>

namespace mr::ui {

namespace {

std::int64_t timeUs(const StepRow& row, std::size_t part)
{
    if (part == 0)
        return row.computeUs;
    return part <= kStallCauses ? row.stallUs[part - 1] : row.wallUs;
}

} // namespace

std::optional<std::int64_t> worstTracedStep(
    const std::vector<TraceInfo>& traces, const StepSeries& steps, std::size_t part)
{
    std::optional<std::int64_t> worst;
    std::int64_t longest = 0;
    for (const TraceInfo& trace : traces) {
        const std::size_t index = steps.lowerBound(static_cast<double>(trace.step));
        if (index >= steps.size() || steps[index].step != trace.step)
            continue;
        if (const std::int64_t us = timeUs(steps[index], part); us > longest) {
            longest = us;
            worst = trace.step;
        }
    }
    return worst;
}

std::optional<std::int64_t> tracedNeighbour(
    const std::vector<TraceInfo>& traces, std::int64_t step, int by)
{
    const auto found = std::find_if(traces.begin(), traces.end(),
        [step](const TraceInfo& trace) { return trace.step == step; });
    if (found == traces.end())
        return std::nullopt;
    const auto at = found - traces.begin() + by;
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(traces.size()))
        return std::nullopt;
    return traces[static_cast<std::size_t>(at)].step;
}

} // namespace mr::ui
