#include "math/step_series.h"

#include <algorithm>

namespace mr::ui {

void StepSeries::append(std::span<const StepRow> rows)
{
    while (!rows.empty()) {
        const std::size_t used = m_size % kBlockRows;
        const std::size_t taken = std::min(rows.size(), kBlockRows - used);
        Block block;
        block.reserve(used + taken);
        if (used > 0)
            block = *m_blocks.back();
        block.insert(block.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(taken));
        auto shared = std::make_shared<const Block>(std::move(block));
        if (used > 0)
            m_blocks.back() = std::move(shared);
        else
            m_blocks.push_back(std::move(shared));
        m_size += taken;
        rows = rows.subspan(taken);
    }
}

// The first row that `before` does not hold for.
template <typename Before>
std::size_t StepSeries::search(Before before) const noexcept
{
    std::size_t low = 0;
    std::size_t high = m_size;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (before((*this)[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

std::size_t StepSeries::lowerBound(double step) const noexcept
{
    return search([step](const StepRow& row) { return static_cast<double>(row.step) < step; });
}

std::size_t StepSeries::lowerBoundMs(double timeMs) const noexcept
{
    return search(
        [timeMs](const StepRow& row) { return static_cast<double>(row.timeMs) < timeMs; });
}

} // namespace mr::ui
