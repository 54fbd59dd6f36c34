#include "math/stall_bars.h"

#include "math/series_math.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mr::ui {

int dominantCause(const StepRow& row) noexcept
{
    const auto worst = std::max_element(row.stallUs.begin(), row.stallUs.end());
    return *worst > 0 ? static_cast<int>(worst - row.stallUs.begin()) : -1;
}

std::vector<StallBar> stallBars(const StepSeries& steps, double lower, double upper, int columns)
{
    std::vector<StallBar> bars;
    if (steps.empty() || columns < 1 || !(upper > lower))
        return bars;
    const double perStep = columns / (upper - lower);
    for (std::size_t i = steps.lowerBound(lower - 0.5); i < steps.size(); ++i) {
        const StepRow& row = steps[i];
        const double edge = static_cast<double>(row.step) - 0.5;
        if (edge >= upper)
            break;
        StallBar bar{
            i, 1, (edge - lower) * perStep, perStep, row.wallUs, row.computeUs, dominantCause(row)};
        if (perStep < 1.0) {
            bar.left = std::max(0.0, std::floor(bar.left));
            bar.width = 1.0;
            if (!bars.empty() && bars.back().left == bar.left) {
                const std::size_t count = bars.back().count + 1;
                if (bar.wallUs > bars.back().wallUs)
                    bars.back() = bar;
                bars.back().count = count;
                continue;
            }
        }
        bars.push_back(bar);
    }
    return bars;
}

double stallScaleUs(std::span<const StallBar> bars)
{
    if (bars.empty())
        return 1.0;
    std::vector<std::int64_t> walls;
    walls.reserve(bars.size());
    for (const StallBar& bar : bars)
        walls.push_back(bar.wallUs);
    const auto p95 = walls.begin() + static_cast<std::ptrdiff_t>((walls.size() - 1) * 95 / 100);
    std::nth_element(walls.begin(), p95, walls.end());
    const auto usual = static_cast<double>(*p95);
    const auto longest = static_cast<double>(*std::max_element(p95, walls.end()));
    return niceCeiling(longest > 3.0 * usual && usual > 0.0 ? 3.0 * usual : longest);
}

LedgerTotals ledgerTotals(const StepSeries& steps, double lower, double upper)
{
    LedgerTotals totals;
    for (std::size_t i = steps.lowerBound(lower); i < steps.size(); ++i) {
        const StepRow& row = steps[i];
        if (static_cast<double>(row.step) > upper)
            break;
        totals.us[0] += row.computeUs;
        for (std::size_t cause = 0; cause < kStallCauses; ++cause)
            totals.us[1 + cause] += row.stallUs[cause];
        totals.wallUs += row.wallUs;
        ++totals.steps;
    }
    return totals;
}

void addIntervals(LedgerTotals& totals, std::span<const IntervalRow> intervals)
{
    for (const IntervalRow& row : intervals) {
        const std::int64_t us = row.endUs - row.beginUs;
        totals.intervalUs.at(static_cast<std::size_t>(row.kind)) += us;
        totals.wallUs += us;
    }
}

std::vector<std::int64_t> shareOut(std::span<const std::int64_t> parts, std::int64_t whole)
{
    std::vector<std::int64_t> shares(parts.size(), 0);
    const std::int64_t sum = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    if (sum <= 0)
        return shares;
    std::vector<double> remainders(parts.size());
    std::int64_t given = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const double exact =
            static_cast<double>(parts[i]) * static_cast<double>(whole) / static_cast<double>(sum);
        shares[i] = static_cast<std::int64_t>(std::floor(exact));
        remainders[i] = exact - static_cast<double>(shares[i]);
        given += shares[i];
    }
    std::vector<std::size_t> order(parts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
        [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
    for (std::size_t i = 0; given < whole; i = (i + 1) % order.size(), ++given)
        ++shares[order[i]];
    return shares;
}

} // namespace mr::ui
