#include "core/step/column_ownership.h"

#include "core/step/window_updates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace mr {
namespace {

float countRatio(double beta, std::int64_t from, std::int64_t to)
{
    if (from == to || from == 0 || to == 0)
        return 1.0F;
    const auto seen = [beta](std::int64_t count) {
        return 1.0 - std::pow(beta, static_cast<double>(count));
    };
    return static_cast<float>(seen(to) / seen(from));
}

} // namespace

ColumnOwnership::ColumnOwnership(WindowMemory& window, const HostRows& rows, ColumnCopier& copier)
    : m_window(window)
    , m_rows(rows)
    , m_copier(copier)
    , m_left(copier.buffer())
{
}

// A selection is part of a step, and a step takes no memory.
void ColumnOwnership::reserve()
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
            values = std::max(values, m_copier.mostValues(slot));
        }
    m_order.reserve(static_cast<std::size_t>(columns));
    for (ColumnValues* buffer : {&m_left, &m_entered})
        buffer->reserve(static_cast<std::size_t>(values));
    for (Move* move : {&m_leaving, &m_entering}) {
        move->positions.reserve(static_cast<std::size_t>(urgent));
        move->columns.reserve(static_cast<std::size_t>(urgent));
    }
}

// The columns with the most energy, of equal ones the first. `leaving` has the positions that
// become free and their columns, `entering` the same positions and the columns that come.
void ColumnOwnership::choose(GroupId id, const WeightCut& slot, const float* energies)
{
    m_order.resize(static_cast<std::size_t>(slot.cols));
    std::iota(m_order.begin(), m_order.end(), 0);
    const auto isMore = [energies](std::int32_t a, std::int32_t b) {
        return energies[a] != energies[b] ? energies[a] > energies[b] : a < b;
    };
    std::nth_element(m_order.begin(), m_order.begin() + slot.urgent, m_order.end(), isMore);
    std::sort(m_order.begin(), m_order.begin() + slot.urgent);
    const std::span wanted(m_order.data(), static_cast<std::size_t>(slot.urgent));
    const auto owned = m_window.urgentList(id, slot);
    for (Move* move : {&m_leaving, &m_entering}) { // not `= {}`: that would give memory back
        move->positions.clear();
        move->columns.clear();
    }
    for (std::size_t position = 0; position < owned.size(); ++position) {
        if (std::binary_search(wanted.begin(), wanted.end(), owned[position]))
            continue;
        m_leaving.positions.push_back(static_cast<std::int32_t>(position));
        m_leaving.columns.push_back(owned[position]);
    }
    const auto hosts = m_window.hostList(id, slot);
    std::set_intersection(wanted.begin(), wanted.end(), hosts.begin(), hosts.end(),
        std::back_inserter(m_entering.columns));
    orderLeaving(id, slot);
    m_entering.positions = m_leaving.positions;
}

void ColumnOwnership::changeLists(GroupId id, const WeightCut& slot)
{
    const auto owned = m_window.urgentList(id, slot);
    const auto hosts = m_window.hostList(id, slot);
    for (std::size_t i = 0; i < m_entering.columns.size(); ++i) {
        owned[static_cast<std::size_t>(m_entering.positions[i])] = m_entering.columns[i];
        *std::lower_bound(hosts.begin(), hosts.end(), m_entering.columns[i]) = -1;
    }
    const auto end = std::remove(hosts.begin(), hosts.end(), -1);
    std::copy(m_leaving.columns.begin(), m_leaving.columns.end(), end);
    std::sort(hosts.begin(), hosts.end());
}

// Compact state is put column by column in ascending order (column_state.h).
void ColumnOwnership::orderLeaving(GroupId id, const WeightCut& slot)
{
    std::vector<std::int32_t>& positionOf = m_order; // by column
    const auto owned = m_window.urgentList(id, slot);
    for (std::size_t position = 0; position < owned.size(); ++position)
        positionOf[static_cast<std::size_t>(owned[position])] = static_cast<std::int32_t>(position);
    std::sort(m_leaving.columns.begin(), m_leaving.columns.end());
    std::transform(m_leaving.columns.begin(), m_leaving.columns.end(), m_leaving.positions.begin(),
        [&](std::int32_t column) { return positionOf[static_cast<std::size_t>(column)]; });
}

// Columns that enter leave the host before the others come: a group that loses its largest moment
// is encoded without it, and the entering values are not rounded once more. Rows ascend, as tiles
// on disk do: each comes once and goes once.
Status ColumnOwnership::exchange(
    GroupId id, const WeightCut& slot, const MomentScales& out, const MomentScales& in)
{
    const auto swap = [&](const MovingRows& rows) -> Status {
        MR_TRY(m_rows.open(id, slot, rows.first));
        const ComplementRows host = m_rows.of(id, slot, rows.first, rows.count);
        MR_TRY(m_copier.toHost(rows, m_left));
        takeColumns(host, m_entering.columns, in, m_entered);
        clearMoments(host, m_entering.columns);
        putColumns(m_left, m_leaving.columns, out, host);
        return m_copier.toDevice(rows, m_entered);
    };
    return m_copier.forRows(id, slot, {0, slot.rows}, m_leaving.positions, swap);
}

Status ColumnOwnership::select(const AdamwFactors& betas, const WindowState& counts)
{
    const std::int64_t device = counts.deviceUpdates;
    const std::int64_t host = counts.hostUpdates;
    const auto scales = [&betas](std::int64_t from, std::int64_t to) {
        return MomentScales{countRatio(betas.beta1, from, to), countRatio(betas.beta2, from, to)};
    };
    const float* energies = m_window.hostEnergies.data();
    movedColumns = 0;
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const GroupId id{g};
        for (const WeightCut& slot : m_window.cut(id).weights) {
            if (!slot.isMovable())
                continue;
            choose(id, slot, energies + slot.listFirst);
            if (m_leaving.columns.empty())
                continue;
            movedColumns += static_cast<std::int64_t>(m_leaving.columns.size());
            MR_TRY(exchange(id, slot, scales(device, host), scales(host, device)));
            changeLists(id, slot);
        }
        energies += m_window.cut(id).columns;
    }
    if (movedColumns == 0)
        return {};
    MR_TRY(m_copier.clearScratch());
    return m_copier.uploadLists();
}

} // namespace mr
