// The arithmetic of the stall strip and of the ledger, without a widget.
//
// Units  Microseconds in *Us.

#pragma once

#include "math/step_series.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr::ui {

// One bar: a step, or the worst of the steps that share a pixel column.
struct StallBar {
    std::size_t index = 0; // position of the step shown
    std::size_t count = 1; // steps that share the bar
    double left = 0.0;     // in columns
    double width = 1.0;
    std::int64_t wallUs = 0;
    std::int64_t computeUs = 0;
    int cause = -1; // the one that took longest; -1: none
};

// The cause that took longest, -1 if the step never waited. The first of equal ones.
int dominantCause(const StepRow& row) noexcept;

// Bars for the steps seen between `lower` and `upper` on a strip `columns` device pixels wide. A
// step's bar reaches from step - 1/2 to step + 1/2, so it stands under the points of line charts.
std::vector<StallBar> stallBars(const StepSeries& steps, double lower, double upper, int columns);

// Top of the axis: the longest bar, unless a few outliers would flatten all others; then three
// times the 95th percentile, and the outliers are clipped (and marked).
double stallScaleUs(std::span<const StallBar> bars);

// Where the time of some steps went: compute, then the six causes. The parts add up to wallUs.
struct LedgerTotals {
    std::array<std::int64_t, 1 + kStallCauses> us{};
    std::array<std::int64_t, kIntervalKinds> intervalUs{}; // by IntervalKind: beside the steps
    std::int64_t wallUs = 0;                               // sum of both arrays
    std::int64_t steps = 0;
};

// Totals of the steps with lower <= step <= upper.
LedgerTotals ledgerTotals(const StepSeries& steps, double lower, double upper);

// Adds the work between the steps, for totals of a whole run.
void addIntervals(LedgerTotals& totals, std::span<const IntervalRow> intervals);

// Whole numbers in proportion to `parts` that add up to `whole` exactly (largest remainder; of
// equal remainders the earlier part wins). All zero if the parts are.
std::vector<std::int64_t> shareOut(std::span<const std::int64_t> parts, std::int64_t whole);

} // namespace mr::ui
