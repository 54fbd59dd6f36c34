#include "core/plan/optimizer.h"

#include <algorithm>

namespace mr {

namespace {

// Values that a weight keeps, of which `averages` are averages of squares.
std::int64_t keptValues(const WeightShape& weight, WeightRule rule, std::int64_t averages) noexcept
{
    switch (rule) {
    case WeightRule::Own:
        break;
    case WeightRule::Projected:
        return 2 * std::max(weight.rows, weight.cols) + 1;
    case WeightRule::Rows:
        return chosenRows(weight.rows) * (2 * weight.cols + 1);
    }
    return averages;
}

constexpr std::int64_t wholeVectors(std::int64_t values) noexcept
{
    return (values + kLightVector - 1) / kLightVector * kLightVector;
}

} // namespace

LightLayout lightLayout(Optimizer optimizer, std::span<const WeightShape> weights, bool inBlock)
{
    LightLayout layout;
    if (!isLight(optimizer))
        return layout;
    if (isForwardOnly(optimizer)) {
        layout.work = ProbeLayout::kWork;
        return layout;
    }
    layout.rowSums = kLightVector; // behind the scalars
    std::int64_t mostRows = 0;
    std::int64_t mostParts = 0;
    for (const WeightShape& weight : weights) {
        const WeightRule rule = ruleOf(optimizer, weight, inBlock);
        const bool averages = infoOf(optimizer).averages && rule != WeightRule::Rows;
        const std::int64_t both = averages ? weight.rows + weight.cols : 0;
        const std::int64_t parts = (weight.rows + kPartRows - 1) / kPartRows * weight.cols;
        const std::int64_t columns = layout.rowSums;
        const std::int64_t before = rule == WeightRule::Projected
                                        ? std::min(weight.rows, weight.cols)
                                    : both > 0 ? weight.cols
                                               : 0;
        if (rule == WeightRule::Rows)
            layout.averages = wholeVectors(layout.averages);
        layout.places.push_back({layout.averages, columns, columns + before, columns + both});
        layout.averages += keptValues(weight, rule, both);
        layout.rowSums = wholeVectors(columns + both + 1);
        mostRows = std::max(mostRows, weight.rows);
        mostParts = std::max(mostParts, both > 0 ? parts : 0);
    }
    layout.parts = layout.rowSums + 2 * mostRows;
    layout.work = layout.parts + mostParts;
    return layout;
}

} // namespace mr
