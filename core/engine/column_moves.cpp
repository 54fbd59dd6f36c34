// State of columns between the device, which keeps its own densely, and host memory.

#include "core/engine/window_tasks.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mr {
namespace {

// Of a weight's state that is in host memory at a time: 12 MiB. Fewer, larger copies are not
// faster.
constexpr std::int64_t kMostValues = std::int64_t{1} << 20;

// Rows of which n columns are copied at a time.
std::int64_t rowsAtOnce(const WeightCut& slot, std::int64_t n)
{
    const auto whole =
        static_cast<std::int64_t>(rowsOfWholeGroups(static_cast<std::size_t>(slot.cols)));
    return std::max(whole, kMostValues / n / whole * whole);
}

// Places of a weight's columns in a plane of its group, row by row.
template <typename F>
void forPlaces(const WeightCut& slot, std::span<const std::int32_t> columns, std::int64_t firstRow,
    std::int64_t rows, const F& fn)
{
    const auto base = static_cast<std::size_t>(slot.first + firstRow * slot.cols);
    forColumns(static_cast<std::size_t>(rows), static_cast<std::size_t>(slot.cols), columns,
        [&](std::size_t element, std::size_t i) { fn(base + element, i); });
}

} // namespace

template <typename F>
Status WindowTasks::forUrgent(F&& fn)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g)
        for (const WeightCut& slot : m_window.cut(GroupId{g}).weights)
            if (slot.urgent > 0)
                MR_TRY(fn(GroupId{g}, slot));
    return {};
}

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

// Calls fn(rows) for all rows of a weight, as many at a time as are copied at once.
template <typename F>
Status WindowTasks::forRows(GroupId id, const WeightCut& slot,
    std::span<const std::int32_t> positions, const Link& link, F&& fn)
{
    std::byte* scratch = m_window.group(id).gradients;
    MR_TRY(link.copy(scratch, reinterpret_cast<const std::byte*>(positions.data()),
        positions.size_bytes(), true));
    const std::size_t bytes = urgentGradientBytes(m_window.cut(id), sizeOf(m_window.compute()));
    const auto n = static_cast<std::int64_t>(positions.size());
    MovingRows rows{id, slot, 0, 0, vectorView(scratch, DType::I32, n),
        scratch + positions.size_bytes(),
        static_cast<std::int64_t>(bytes - positions.size_bytes())};
    const std::int64_t atOnce = rowsAtOnce(slot, n);
    for (; rows.first < slot.rows; rows.first += atOnce) {
        rows.count = std::min(atOnce, slot.rows - rows.first);
        MR_TRY(fn(std::as_const(rows)));
    }
    return {};
}

// The same for all columns of the device. What is copied is not of a step.
template <typename F>
Status WindowTasks::forAllUrgent(const Link& link, F&& fn)
{
    const auto h2d = h2dBytes;
    const auto d2h = d2hBytes;
    std::vector<std::int32_t> positions;
    MR_TRY(forUrgent([&](GroupId id, const WeightCut& slot) {
        positions.resize(static_cast<std::size_t>(slot.urgent));
        std::iota(positions.begin(), positions.end(), 0);
        const std::span<const std::int32_t> columns = m_window.urgentList(id, slot);
        return forRows(
            id, slot, positions, link, [&](const MovingRows& rows) { return fn(rows, columns); });
    }));
    h2dBytes = h2d;
    d2hBytes = d2h;
    return clearScratch(link.stream, link.finish);
}

// Who enters leaves the host before anybody comes: a group that loses its largest moment is encoded
// without it, and what enters is not rounded once more.
Status WindowTasks::exchange(GroupId id, const WeightCut& slot, const MomentScales& out,
    const MomentScales& in, const Link& link)
{
    return forRows(id, slot, m_leaving.positions, link, [&](const MovingRows& rows) -> Status {
        const ComplementRows host = stateRows(id, slot, rows.first, rows.count);
        MR_TRY(copyDense(rows, m_values, true, link));
        takeColumns(host, m_entering.columns, in, m_entered);
        clearMoments(host, m_entering.columns);
        putColumns(m_values, m_leaving.columns, out, host);
        return copyDense(rows, m_entered, false, link);
    });
}

// What served as scratch holds gradients again, with zeros between those of two weights: sums and
// norms run over whole groups.
Status WindowTasks::clearScratch(Stream& stream, const Finish& finish)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        std::byte* data = m_window.group(GroupId{g}).gradients;
        const auto bytes = static_cast<std::int64_t>(
            urgentGradientBytes(m_window.cut(GroupId{g}), sizeOf(m_window.compute())));
        if (data && bytes > 0)
            MR_TRY(m_device.ops().fill({vectorView(data, DType::F32, bytes / 4), 0.0F}, stream));
    }
    return finish(stream);
}

Status WindowTasks::publish(Stream& stream, const Copy& copy, const Finish& finish)
{
    if (m_memory.stateCodec() == StateCodec::Compact)
        return {};
    m_isPublished = true;
    const Link link{stream, copy, finish};
    return forAllUrgent(
        link, [&](const MovingRows& rows, std::span<const std::int32_t> columns) -> Status {
            MR_TRY(copyDense(rows, m_values, true, link));
            putColumns(
                m_values, columns, {}, stateRows(rows.group, rows.slot, rows.first, rows.count));
            return {};
        });
}

Status WindowTasks::adopt(Stream& stream, const Copy& copy, const Finish& finish)
{
    MR_TRY(uploadLists(copy));
    if (m_memory.stateCodec() == StateCodec::Compact)
        return {};
    m_isPublished = true;
    const Link link{stream, copy, finish};
    return forAllUrgent(
        link, [&](const MovingRows& rows, std::span<const std::int32_t> columns) -> Status {
            takeColumns(
                stateRows(rows.group, rows.slot, rows.first, rows.count), columns, {}, m_values);
            return copyDense(rows, m_values, false, link);
        });
}

// The weights that ops read were made for all columns as the host's codec rounds them.
Status WindowTasks::install(
    std::span<const MasterView> master, Stream& stream, const Copy& copy, const Finish& finish)
{
    const Link link{stream, copy, finish};
    MR_TRY(forAllUrgent(
        link, [&](const MovingRows& rows, std::span<const std::int32_t> columns) -> Status {
            const MasterView& from = master[static_cast<std::size_t>(rows.group.value)];
            m_values.resize(static_cast<std::size_t>(rows.count) * columns.size());
            std::fill(m_values.m.begin(), m_values.m.end(), 0.0F);
            std::fill(m_values.v.begin(), m_values.v.end(), 0.0F);
            forPlaces(
                rows.slot, columns, rows.first, rows.count, [&](std::size_t place, std::size_t i) {
                    m_values.high[i] = from.high[place];
                    m_values.low[i] = from.low[place];
                });
            return copyDense(rows, m_values, false, link);
        }));
    MR_TRY(forUrgent(
        [&](GroupId id, const WeightCut& slot) { return scatterUrgent(id, slot, stream); }));
    return finish(stream);
}

Status WindowTasks::readMaster(
    std::span<const MasterView> master, Stream& stream, const Copy& copy, const Finish& finish)
{
    const Link link{stream, copy, finish};
    return forAllUrgent(
        link, [&](const MovingRows& rows, std::span<const std::int32_t> columns) -> Status {
            const MasterView& to = master[static_cast<std::size_t>(rows.group.value)];
            MR_TRY(copyDense(rows, m_values, true, link));
            forPlaces(
                rows.slot, columns, rows.first, rows.count, [&](std::size_t place, std::size_t i) {
                    to.high[place] = m_values.high[i];
                    to.low[place] = m_values.low[i];
                });
            return {};
        });
}

// Moments that nobody owns would fade into denormal numbers, which are slow; zeros stay zeros.
void WindowTasks::clearPublished()
{
    if (!m_isPublished)
        return;
    m_isPublished = false;
    (void)forUrgent([&](GroupId id, const WeightCut& slot) {
        clearMoments(stateRows(id, slot, 0, slot.rows), m_window.urgentList(id, slot));
        return Status();
    }).ok();
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
