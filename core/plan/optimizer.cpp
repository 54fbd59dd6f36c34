#include "core/plan/optimizer.h"

#include <algorithm>

namespace mr {

LightLayout lightLayout(Optimizer optimizer, std::span<const WeightShape> weights, bool inBlock)
{
    LightLayout layout;
    if (!isLight(optimizer))
        return layout;
    layout.rowSums = kLightVector; // behind the scalars
    std::int64_t mostRows = 0;
    std::int64_t mostParts = 0;
    for (const WeightShape& weight : weights) {
        const std::int64_t both = infoOf(optimizer).averages ? weight.rows + weight.cols : 0;
        const std::int64_t parts = (weight.rows + kPartRows - 1) / kPartRows * weight.cols;
        const std::int64_t columns = layout.rowSums;
        const bool projected = isProjected(optimizer, weight, inBlock);
        const std::int64_t before = projected  ? std::min(weight.rows, weight.cols)
                                    : both > 0 ? weight.cols
                                               : 0;
        layout.places.push_back({layout.averages, columns, columns + before, columns + both});
        layout.averages += projected ? 2 * std::max(weight.rows, weight.cols) + 1 : both;
        layout.rowSums = (columns + both + kLightVector) / kLightVector * kLightVector;
        mostRows = std::max(mostRows, weight.rows);
        mostParts = std::max(mostParts, both > 0 ? parts : 0);
    }
    layout.parts = layout.rowSums + 2 * mostRows;
    layout.work = layout.parts + mostParts;
    return layout;
}

} // namespace mr
