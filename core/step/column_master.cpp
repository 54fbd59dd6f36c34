#include "core/step/column_master.h"

#include <algorithm>

namespace mr {
namespace {

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

ColumnMaster::ColumnMaster(RunMemory& memory, const HostRows& rows, ColumnCopier& copier,
    BlockingCopier& link, Stream& stream)
    : m_memory(memory)
    , m_window(*memory.window)
    , m_rows(rows)
    , m_copier(copier)
    , m_link(link)
    , m_stream(stream)
    , m_values(copier.buffer())
{
}

Status ColumnMaster::publish()
{
    if (m_memory.keepsColumnsApart())
        return {};
    m_isPublished = true;
    return m_copier.forAllUrgent([&](const MovingRows& rows,
                                     std::span<const std::int32_t> columns) -> Status {
        MR_TRY(m_copier.toHost(rows, m_values));
        putColumns(m_values, columns, {}, m_rows.of(rows.group, rows.slot, rows.first, rows.count));
        return {};
    });
}

Status ColumnMaster::adopt(bool areApart)
{
    MR_TRY(m_copier.uploadLists());
    if (areApart)
        return {};
    m_isPublished = true;
    return m_copier.forAllUrgent(
        [&](const MovingRows& rows, std::span<const std::int32_t> columns) -> Status {
            MR_TRY(m_rows.open(rows.group, rows.slot, rows.first));
            takeColumns(
                m_rows.of(rows.group, rows.slot, rows.first, rows.count), columns, {}, m_values);
            return m_copier.toDevice(rows, m_values);
        });
}

// Halves of the device's columns of a master, moments at zero.
Status ColumnMaster::takeMaster(MasterReader& master, const MovingRows& rows,
    std::span<const std::int32_t> columns, MasterPiece& piece)
{
    m_values.resize(static_cast<std::size_t>(rows.count) * columns.size());
    std::fill(m_values.m.begin(), m_values.m.end(), 0.0F);
    std::fill(m_values.v.begin(), m_values.v.end(), 0.0F);
    const auto cols = static_cast<std::size_t>(rows.slot.cols);
    std::size_t row = 0;
    const auto take = [&](std::int64_t, const MasterView& view) {
        const std::size_t count = view.high.size() / cols;
        forColumns(count, cols, columns, [&](std::size_t element, std::size_t i) {
            m_values.high[row * columns.size() + i] = view.high[element];
            m_values.low[row * columns.size() + i] = view.low[element];
        });
        row += count;
        return Status();
    };
    const std::int64_t atOnce = std::max<std::int64_t>(1, kMasterPiece / rows.slot.cols);
    const MasterRange range{
        rows.group, rows.slot.first + rows.first * rows.slot.cols, rows.count * rows.slot.cols};
    return forPieces(master, range, piece, take, atOnce * rows.slot.cols);
}

// The weights that ops read were made for all columns as the host's codec rounds them.
Status ColumnMaster::install(MasterReader& master)
{
    MasterPiece piece;
    const auto put = [&](const MovingRows& rows, std::span<const std::int32_t> columns) -> Status {
        MR_TRY(takeMaster(master, rows, columns, piece));
        return m_copier.toDevice(rows, m_values);
    };
    MR_TRY(m_copier.forAllUrgent(put));
    MR_TRY(forUrgent(m_window, [&](GroupId id, const WeightCut& slot) {
        return m_copier.scatterUrgent(id, slot, m_stream);
    }));
    return m_link.finish(m_stream);
}

Status ColumnMaster::read(GroupId id, std::int64_t first, const MasterView& out)
{
    const std::int64_t end = first + std::ssize(out.high);
    for (const WeightCut& slot : m_window.cut(id).weights) {
        const std::int64_t from = std::max(first, slot.first) - slot.first;
        const std::int64_t to = std::min(end - slot.first, slot.rows * slot.cols);
        if (slot.urgent == 0 || from >= to)
            continue;
        const RowRange touched{from / slot.cols, (to + slot.cols - 1) / slot.cols};
        const auto lay = [&](const MovingRows& rows,
                             std::span<const std::int32_t> columns) -> Status {
            MR_TRY(m_copier.toHost(rows, m_values));
            forPlaces(slot, columns, rows.first, rows.count, [&](std::size_t place, std::size_t i) {
                const std::size_t at = place - static_cast<std::size_t>(first);
                if (at < out.high.size()) // below `first` it wraps around
                    out.high[at] = m_values.high[i];
                if (at < out.low.size())
                    out.low[at] = m_values.low[i];
            });
            return {};
        };
        MR_TRY(m_copier.forUrgentRows(id, slot, touched, lay));
    }
    MR_TRY(m_copier.clearScratch(id));
    return m_link.finish(m_stream);
}

// Moments that nobody owns would fade into denormal numbers, which are slow; zeros stay zeros.
Status ColumnMaster::clearPublished()
{
    if (!m_isPublished)
        return {};
    m_isPublished = false;
    return forUrgent(m_window, [&](GroupId id, const WeightCut& slot) -> Status {
        for (std::int64_t row = 0; row < slot.rows;) {
            const std::int64_t count = m_rows.together(id, slot, row, slot.rows - row);
            MR_TRY(m_rows.open(id, slot, row));
            clearMoments(m_rows.of(id, slot, row, count), m_window.urgentList(id, slot));
            row += count;
        }
        return {};
    });
}

} // namespace mr
