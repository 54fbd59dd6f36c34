// Loops of WindowTasks over rows of which the device has columns; for its own files alone.

#pragma once

#include "core/step/window_steps.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace mr {

// Of a weight's state that is in host memory at a time: 12 MiB. Fewer, larger copies are not
// faster.
inline constexpr std::int64_t kMostValues = std::int64_t{1} << 20;

// Rows of which n columns are copied at a time.
inline std::int64_t rowsAtOnce(const WeightCut& slot, std::int64_t n)
{
    const auto whole =
        static_cast<std::int64_t>(rowsOfWholeGroups(static_cast<std::size_t>(slot.cols)));
    return std::max(whole, kMostValues / n / whole * whole);
}

template <typename F>
Status WindowTasks::forUrgent(F&& fn)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g)
        for (const WeightCut& slot : m_window.cut(GroupId{g}).weights)
            if (slot.urgent > 0)
                MR_TRY(fn(GroupId{g}, slot));
    return {};
}

// Calls fn(rows) for rows of a weight, as many at a time as are copied at once and whose state is
// together in memory or in one tile on disk.
template <typename F>
Status WindowTasks::forRows(GroupId id, const WeightCut& slot, RowRange range,
    std::span<const std::int32_t> positions, const Link& link, F&& fn)
{
    std::byte* scratch = m_window.group(id).gradients;
    MR_TRY(link.copy(scratch, reinterpret_cast<const std::byte*>(positions.data()),
        positions.size_bytes(), true));
    const std::size_t bytes = urgentGradientBytes(m_window.cut(id), sizeOf(m_window.compute()));
    const auto n = static_cast<std::int64_t>(positions.size());
    MovingRows rows{id, slot, range.first, 0, vectorView(scratch, DType::I32, n),
        scratch + positions.size_bytes(),
        static_cast<std::int64_t>(bytes - positions.size_bytes())};
    const std::int64_t atOnce = rowsAtOnce(slot, n);
    for (; rows.first < range.end; rows.first += rows.count) {
        rows.count = rowsTogether(id, slot, rows.first, std::min(atOnce, range.end - rows.first));
        MR_TRY(fn(std::as_const(rows)));
    }
    return {};
}

// The same with all columns of the device. What is copied is not of a step.
template <typename F>
Status WindowTasks::forUrgentRows(
    GroupId id, const WeightCut& slot, RowRange range, const Link& link, F&& fn)
{
    const auto h2d = h2dBytes;
    const auto d2h = d2hBytes;
    std::vector<std::int32_t> positions(static_cast<std::size_t>(slot.urgent));
    std::iota(positions.begin(), positions.end(), 0);
    const std::span<const std::int32_t> columns = m_window.urgentList(id, slot);
    MR_TRY(forRows(id, slot, range, positions, link,
        [&](const MovingRows& rows) { return fn(rows, columns); }));
    h2dBytes = h2d;
    d2hBytes = d2h;
    return {};
}

template <typename F>
Status WindowTasks::forAllUrgent(const Link& link, F&& fn)
{
    MR_TRY(forUrgent([&](GroupId id, const WeightCut& slot) {
        return forUrgentRows(id, slot, {0, slot.rows}, link, fn);
    }));
    return clearScratch(link.stream, link.finish);
}

} // namespace mr
