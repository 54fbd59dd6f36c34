#include "core/plan/optimizer.h"

#include <algorithm>

namespace mr {

LightLayout lightLayout(Optimizer optimizer, std::span<const WeightShape> weights)
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
        const std::int64_t rows = columns + (both > 0 ? weight.cols : 0);
        layout.places.push_back({layout.averages, columns, rows, columns + both});
        layout.averages += both;
        layout.rowSums = (columns + both + kLightVector) / kLightVector * kLightVector;
        mostRows = std::max(mostRows, weight.rows);
        mostParts = std::max(mostParts, both > 0 ? parts : 0);
    }
    layout.parts = layout.rowSums + 2 * mostRows;
    layout.work = layout.parts + mostParts;
    return layout;
}

} // namespace mr
