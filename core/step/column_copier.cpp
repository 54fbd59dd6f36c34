#include "core/step/column_copier.h"

namespace mr {
namespace {

// Values of a weight that are copied at a time; their state is 12 MiB. Fewer, larger copies are not
// faster.
constexpr std::int64_t kMostValues = std::int64_t{1} << 20;

} // namespace

ColumnCopier::ColumnCopier(Device& device, RunMemory& memory, const HostRows& rows,
    BlockingCopier& copier, Stream& stream, LinkBytes& traffic)
    : m_device(device)
    , m_memory(memory)
    , m_window(*memory.window)
    , m_rows(rows)
    , m_copier(copier)
    , m_stream(stream)
    , m_traffic(traffic)
{
}

std::int64_t ColumnCopier::rowsAtOnce(const WeightCut& slot, std::int64_t columns) const
{
    const auto whole =
        static_cast<std::int64_t>(rowsOfWholeGroups(static_cast<std::size_t>(slot.cols)));
    return std::max(whole, kMostValues / columns / whole * whole);
}

// Fewer columns are more rows, but no more values than with all.
std::int64_t ColumnCopier::mostValues(const WeightCut& slot) const
{
    const std::int64_t atOnce = rowsAtOnce(slot, slot.urgent) * slot.urgent;
    return std::min(slot.rows * slot.urgent, std::max(kMostValues, atOnce));
}

std::int64_t ColumnCopier::scratchBytes(GroupId id) const
{
    return static_cast<std::int64_t>(
        urgentGradientBytes(m_window.cut(id), sizeOf(m_window.compute())));
}

// Calls fn(rows of the dense plane, the same in scratch, the same on the host), as many as fit.
template <typename F>
Status ColumnCopier::forParts(
    const TensorView& dense, std::byte* values, const MovingRows& rows, F&& fn)
{
    const std::int64_t n = rows.positions.count();
    const auto each = static_cast<std::int64_t>(sizeOf(dense.dtype));
    const std::int64_t atOnce = rows.room / (n * each);
    if (atOnce < 1)
        return Status::error(ErrorKind::Internal, "column moves: no room for a row");
    for (std::int64_t row = 0; row < rows.count; row += atOnce) {
        const std::int64_t count = std::min(atOnce, rows.count - row);
        const TensorView part = matrixView(rows.scratch, dense.dtype, count, n);
        const std::span<std::byte> here(values + row * n * each, part.bytes());
        MR_TRY(fn(dense.rows(rows.first + row, count), part, here));
    }
    return {};
}

// Halves are copied as the two bytes they are.
template <typename F>
Status ColumnCopier::forPlanes(const MovingRows& rows, ColumnValues& values, F&& fn)
{
    const DenseState dense = m_window.dense(rows.group, rows.slot);
    values.resize(static_cast<std::size_t>(rows.count * rows.positions.count()));
    const auto run = [&](const TensorView& view, DType type, auto& plane) {
        return forParts(matrixView(view.data, type, rows.slot.rows, rows.slot.urgent),
            reinterpret_cast<std::byte*>(plane.data()), rows, fn);
    };
    MR_TRY(run(dense.m, DType::F32, values.m));
    MR_TRY(run(dense.v, DType::F32, values.v));
    MR_TRY(run(dense.low, DType::BF16, values.low));
    return run(dense.high, DType::BF16, values.high);
}

Status ColumnCopier::toHost(const MovingRows& rows, ColumnValues& values)
{
    return forPlanes(rows, values,
        [&](const TensorView& place, const TensorView& part, std::span<std::byte> here) -> Status {
            MR_TRY(m_device.ops().gatherColumns({place, rows.positions, part}, m_stream));
            MR_TRY(m_copier.finish(m_stream));
            m_traffic.toHost += static_cast<std::int64_t>(here.size());
            return m_copier.toHost(here, part.data);
        });
}

Status ColumnCopier::toDevice(const MovingRows& rows, ColumnValues& values)
{
    return forPlanes(rows, values,
        [&](const TensorView& place, const TensorView& part, std::span<std::byte> here) -> Status {
            MR_TRY(m_copier.toDevice(part.data, here));
            m_traffic.toDevice += static_cast<std::int64_t>(here.size());
            MR_TRY(m_device.ops().scatterColumns({part, rows.positions, place}, m_stream));
            return m_copier.finish(m_stream);
        });
}

Status ColumnCopier::scatterUrgent(GroupId id, const WeightCut& slot, Stream& stream)
{
    const DenseState dense = m_window.dense(id, slot);
    TensorView fresh = matrixView(dense.high.data, DType::BF16, slot.rows, slot.urgent);
    if (m_memory.compute() == DType::F32) {
        fresh = matrixView(m_window.scratch, DType::F32, slot.rows, slot.urgent);
        MR_TRY(m_device.ops().join(
            {dense.high, dense.low, vectorView(fresh.data, DType::F32, fresh.count())}, stream));
    }
    return m_device.ops().scatterColumns(
        {fresh, m_window.urgentColumns(id, slot), m_memory.weight(id, slot)}, stream);
}

Status ColumnCopier::uploadLists()
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const WindowGroup& group = m_window.group(GroupId{g});
        MR_TRY(m_copier.toDevice(group.lists, std::as_bytes(std::span(group.columns))));
    }
    return {};
}

// The scratch holds gradients again, with zeros between those of two weights: sums and norms run
// over whole groups.
Status ColumnCopier::clearScratch(GroupId id)
{
    std::byte* data = m_window.group(id).gradients;
    const std::int64_t bytes = scratchBytes(id);
    if (!data || bytes == 0)
        return {};
    return m_device.ops().fill({vectorView(data, DType::F32, bytes / 4), 0.0F}, m_stream);
}

Status ColumnCopier::clearScratch()
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g)
        MR_TRY(clearScratch(GroupId{g}));
    return m_copier.finish(m_stream);
}

} // namespace mr
