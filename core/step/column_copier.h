// ColumnCopier: columns of a weight between the device, which keeps the state of its own densely,
// and host memory.
//
// Between steps nobody needs the urgent gradients of a group, which serve as scratch on the device:
// first a list of positions, then as many rows as fit. clearScratch() gives them back.
//
// Threads    Engine thread. A step may call scatterUrgent(), which enqueues; all else blocks.
// Ownership  Borrows all it is given.
// Errors     Those of the device.

#pragma once

#include "core/device/device.h"
#include "core/step/blocking_copier.h"
#include "core/step/column_state.h"
#include "core/step/host_rows.h"

#include <millrace/status.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace mr {

struct RowRange { // half-open
    std::int64_t first = 0;
    std::int64_t end = 0;
};

// Rows of one weight, some columns of which are copied.
struct MovingRows {
    GroupId group;
    const WeightCut& slot;
    std::int64_t first = 0;
    std::int64_t count = 0;
    TensorView positions; // device, I32: in the dense state
    std::byte* scratch = nullptr;
    std::int64_t room = 0; // bytes of it
};

// Calls fn(group, slot) for weights of which the device has columns.
template <typename F>
Status forUrgent(const WindowMemory& window, F&& fn)
{
    for (std::int32_t g = 0; g < window.groupCount(); ++g)
        for (const WeightCut& slot : window.cut(GroupId{g}).weights)
            if (slot.urgent > 0)
                MR_TRY(fn(GroupId{g}, slot));
    return {};
}

class ColumnCopier
{
public:
    // Bytes that are copied are added to `traffic`.
    ColumnCopier(Device& device, RunMemory& memory, const HostRows& rows, BlockingCopier& copier,
        Stream& stream, LinkBytes& traffic);

    // Calls fn(rows) for rows of a weight: as many at a time as one copy takes, with their state
    // together in memory or in one tile on disk.
    template <typename F>
    Status forRows(GroupId id, const WeightCut& slot, RowRange range,
        std::span<const std::int32_t> positions, F&& fn);
    // With all columns of the device: fn(rows, columns).
    template <typename F>
    Status forUrgentRows(GroupId id, const WeightCut& slot, RowRange range, F&& fn);
    // All weights of which the device has columns.
    template <typename F>
    Status forAllUrgent(F&& fn);

    // The four planes of the rows.
    Status toHost(const MovingRows& rows, ColumnValues& values);
    Status toDevice(const MovingRows& rows, ColumnValues& values);
    // The device's columns into the weights that ops read, on `stream`.
    Status scatterUrgent(GroupId id, const WeightCut& slot, Stream& stream);
    // The lists of the device's and of the host's columns.
    Status uploadLists();

    Status clearScratch();
    Status clearScratch(GroupId id); // enqueues it

    // The most values of a weight that are copied at once; with so much reserved, copying allocates
    // nothing.
    std::int64_t mostValues(const WeightCut& slot) const;
    // Lent to every copy: there is one, because it may take 12 MiB.
    ColumnValues& buffer() noexcept { return m_buffer; }

private:
    std::int64_t rowsAtOnce(const WeightCut& slot, std::int64_t columns) const;
    template <typename F>
    Status forPlanes(const MovingRows& rows, ColumnValues& values, F&& fn);
    template <typename F>
    Status forParts(const TensorView& dense, std::byte* values, const MovingRows& rows, F&& fn);
    std::int64_t scratchBytes(GroupId id) const;

    Device& m_device;
    RunMemory& m_memory;
    WindowMemory& m_window;
    const HostRows& m_rows;
    BlockingCopier& m_copier;
    Stream& m_stream;
    LinkBytes& m_traffic;
    ColumnValues m_buffer;
};

template <typename F>
Status ColumnCopier::forRows(GroupId id, const WeightCut& slot, RowRange range,
    std::span<const std::int32_t> positions, F&& fn)
{
    std::byte* scratch = m_window.group(id).gradients;
    MR_TRY(m_copier.toDevice(scratch, std::as_bytes(positions)));
    const auto n = static_cast<std::int64_t>(positions.size());
    const auto listed = static_cast<std::int64_t>(positions.size_bytes());
    MovingRows rows{id, slot, range.first, 0, vectorView(scratch, DType::I32, n), scratch + listed,
        scratchBytes(id) - listed};
    const std::int64_t atOnce = rowsAtOnce(slot, n);
    for (; rows.first < range.end; rows.first += rows.count) {
        const std::int64_t most = std::min(atOnce, range.end - rows.first);
        rows.count = m_rows.together(id, slot, rows.first, most);
        MR_TRY(fn(std::as_const(rows)));
    }
    return {};
}

template <typename F>
Status ColumnCopier::forUrgentRows(GroupId id, const WeightCut& slot, RowRange range, F&& fn)
{
    std::vector<std::int32_t> positions(static_cast<std::size_t>(slot.urgent));
    std::iota(positions.begin(), positions.end(), 0);
    const std::span<const std::int32_t> columns = m_window.urgentList(id, slot);
    return forRows(
        id, slot, range, positions, [&](const MovingRows& rows) { return fn(rows, columns); });
}

template <typename F>
Status ColumnCopier::forAllUrgent(F&& fn)
{
    MR_TRY(forUrgent(m_window, [&](GroupId id, const WeightCut& slot) {
        return forUrgentRows(id, slot, {0, slot.rows}, fn);
    }));
    return clearScratch();
}

} // namespace mr
