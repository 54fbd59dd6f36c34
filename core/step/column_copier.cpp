// State of columns between the device, which keeps its own densely, and host memory.

#include "core/step/column_copier.h"

#include <algorithm>

namespace mr {

// One plane. The group's urgent gradients, which nobody needs between steps, serve as scratch on
// the device: first the list of positions, then as many rows as fit.
Status WindowTasks::copyPlane(const TensorView& dense, std::byte* values, const MovingRows& rows,
    bool toHost, const Link& link)
{
    const std::int64_t n = rows.positions.count();
    const auto each = static_cast<std::int64_t>(sizeOf(dense.dtype));
    const std::int64_t atOnce = rows.room / (n * each);
    if (atOnce < 1)
        return Status::error(ErrorKind::Internal, "column moves: no room for a row");
    for (std::int64_t row = 0; row < rows.count; row += atOnce) {
        const std::int64_t count = std::min(atOnce, rows.count - row);
        const TensorView part = matrixView(rows.scratch, dense.dtype, count, n);
        const TensorView place = dense.rows(rows.first + row, count);
        std::byte* here = values + row * n * each;
        if (toHost) {
            MR_TRY(m_device.ops().gatherColumns({place, rows.positions, part}, link.stream));
            MR_TRY(link.finish(link.stream));
            MR_TRY(link.copy(here, part.data, part.bytes(), false));
        } else {
            MR_TRY(link.copy(part.data, here, part.bytes(), true));
            MR_TRY(m_device.ops().scatterColumns({part, rows.positions, place}, link.stream));
            MR_TRY(link.finish(link.stream));
        }
        (toHost ? d2hBytes : h2dBytes) += static_cast<std::int64_t>(part.bytes());
    }
    return {};
}

// All four planes.
Status WindowTasks::copyDense(
    const MovingRows& rows, ColumnValues& values, bool toHost, const Link& link)
{
    const DenseState dense = m_window.dense(rows.group, rows.slot);
    values.resize(static_cast<std::size_t>(rows.count * rows.positions.count()));
    // Halves are copied as the two bytes they are.
    const auto run = [&](const TensorView& view, DType type, auto& plane) {
        return copyPlane(matrixView(view.data, type, rows.slot.rows, rows.slot.urgent),
            reinterpret_cast<std::byte*>(plane.data()), rows, toHost, link);
    };
    MR_TRY(run(dense.m, DType::F32, values.m));
    MR_TRY(run(dense.v, DType::F32, values.v));
    MR_TRY(run(dense.low, DType::BF16, values.low));
    return run(dense.high, DType::BF16, values.high);
}

// Who enters leaves the host before anybody comes: a group that loses its largest moment is encoded
// without it, and what enters is not rounded once more. Rows ascend, as tiles on disk do: each
// comes once and goes once.
Status WindowTasks::exchange(GroupId id, const WeightCut& slot, const MomentScales& out,
    const MomentScales& in, const Link& link)
{
    const auto swap = [&](const MovingRows& rows) -> Status {
        MR_TRY(openRow(id, slot, rows.first));
        const ComplementRows host = stateRows(id, slot, rows.first, rows.count);
        MR_TRY(copyDense(rows, m_values, true, link));
        takeColumns(host, m_entering.columns, in, m_entered);
        clearMoments(host, m_entering.columns);
        putColumns(m_values, m_leaving.columns, out, host);
        return copyDense(rows, m_entered, false, link);
    };
    return forRows(id, slot, {0, slot.rows}, m_leaving.positions, link, swap);
}

// What served as scratch holds gradients again, with zeros between those of two weights: sums and
// norms run over whole groups.
Status WindowTasks::clearScratch(GroupId id, Stream& stream)
{
    std::byte* data = m_window.group(id).gradients;
    const auto bytes = static_cast<std::int64_t>(
        urgentGradientBytes(m_window.cut(id), sizeOf(m_window.compute())));
    if (!data || bytes == 0)
        return {};
    return m_device.ops().fill({vectorView(data, DType::F32, bytes / 4), 0.0F}, stream);
}

Status WindowTasks::clearScratch(Stream& stream, const Finish& finish)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g)
        MR_TRY(clearScratch(GroupId{g}, stream));
    return finish(stream);
}

Status WindowTasks::uploadLists(const Copy& copy)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const WindowGroup& group = m_window.group(GroupId{g});
        MR_TRY(copy(group.lists, reinterpret_cast<const std::byte*>(group.columns.data()),
            group.columns.size() * sizeof(std::int32_t), true));
    }
    return {};
}

// A selection is part of a step, and a step takes no memory.
void WindowTasks::reserveMoves()
{
    std::int64_t columns = 0;
    std::int64_t urgent = 0;
    std::int64_t values = 0;
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g)
        for (const WeightCut& slot : m_window.cut(GroupId{g}).weights) {
            if (slot.urgent == 0)
                continue;
            columns = std::max(columns, slot.cols);
            urgent = std::max(urgent, slot.urgent);
            // Fewer columns are more rows, but no more values than these.
            values = std::max(
                values, std::min(slot.rows * slot.urgent,
                            std::max(kMostValues, rowsAtOnce(slot, slot.urgent) * slot.urgent)));
        }
    m_order.reserve(static_cast<std::size_t>(columns));
    for (ColumnValues* buffer : {&m_values, &m_entered})
        buffer->reserve(static_cast<std::size_t>(values));
    for (Move* move : {&m_leaving, &m_entering}) {
        move->positions.reserve(static_cast<std::size_t>(urgent));
        move->columns.reserve(static_cast<std::size_t>(urgent));
    }
}

Status WindowTasks::prepare(Stream& stream, const Copy& copy, const Finish& finish)
{
    reserveMoves();
    const auto clear = [&](std::byte* data, std::int64_t bytes) {
        return data && bytes > 0
                   ? m_device.ops().fill({vectorView(data, DType::F32, bytes / 4), 0.0F}, stream)
                   : Status();
    };
    const auto compute = static_cast<std::int64_t>(sizeOf(m_window.compute()));
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const GroupId id{g};
        const WindowGroup& group = m_window.group(id);
        const GroupCut& cut = m_window.cut(id);
        MR_TRY(clear(group.state, 12 * cut.dense));
        MR_TRY(clear(group.sums, 4 * cut.dense));
        MR_TRY(clear(group.deviceSums, 4 * cut.packed));
        MR_TRY(clear(group.energies, 8 * cut.columns));
        std::fill_n(group.hostSums,
            m_window.bankBytes(id) * static_cast<std::size_t>(m_window.layout().banks),
            std::byte{0});
        if (group.landed)
            std::fill_n(group.landed, static_cast<std::size_t>(compute * cut.packed), std::byte{0});
    }
    MR_TRY(clearScratch(stream, finish));
    return uploadLists(copy);
}

} // namespace mr
