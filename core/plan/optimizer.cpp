#include "core/plan/optimizer.h"

#include <algorithm>

namespace mr {

LightCounts lightCounts(Optimizer optimizer, const GroupShape& group) noexcept
{
    LightCounts counts;
    if (!isLight(optimizer))
        return counts;
    std::int64_t mostRows = 0;
    std::int64_t mostParts = 0;
    for (const WeightShape& weight : group.weights) {
        if (infoOf(optimizer).averages) {
            counts.averages += weight.rows + weight.cols;
            mostParts =
                std::max(mostParts, (weight.rows + kPartRows - 1) / kPartRows * weight.cols);
        }
        counts.rowSums += 1; // its step size
        mostRows = std::max(mostRows, weight.rows);
    }
    counts.rowSums += counts.averages;
    counts.parts = counts.rowSums + 2 * mostRows;
    counts.work = counts.parts + mostParts;
    return counts;
}

} // namespace mr
