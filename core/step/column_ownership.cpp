// Which columns are the device's: energies are compared on the host, and owners change.
//
// There is one count of updates per owner, not one per column. A moment that moves is therefore
// multiplied by (1 - beta^new count) / (1 - beta^old count): what bias correction makes of it is
// the same before and after, and where the counts agree nothing changes at all.

#include "core/step/window_steps.h"

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

// The columns with the most energy, of equal ones the first. `leaving` has the positions that
// become free and their columns, `entering` the same positions and the columns that come.
void WindowTasks::choose(GroupId id, const WeightCut& slot, const float* energies)
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

void WindowTasks::changeLists(GroupId id, const WeightCut& slot)
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
void WindowTasks::orderLeaving(GroupId id, const WeightCut& slot)
{
    std::vector<std::int32_t>& positionOf = m_order; // by column
    const auto owned = m_window.urgentList(id, slot);
    for (std::size_t position = 0; position < owned.size(); ++position)
        positionOf[static_cast<std::size_t>(owned[position])] = static_cast<std::int32_t>(position);
    std::sort(m_leaving.columns.begin(), m_leaving.columns.end());
    std::transform(m_leaving.columns.begin(), m_leaving.columns.end(), m_leaving.positions.begin(),
        [&](std::int32_t column) { return positionOf[static_cast<std::size_t>(column)]; });
}

Status WindowTasks::selectColumns(
    Stream& stream, const Copy& copy, const Finish& finish, const AdamwFactors& betas)
{
    const double beta1 = betas.beta1;
    const double beta2 = betas.beta2;
    const std::int64_t device = state.deviceUpdates;
    const std::int64_t host = state.hostUpdates;
    const MomentScales out{countRatio(beta1, device, host), countRatio(beta2, device, host)};
    const MomentScales in{countRatio(beta1, host, device), countRatio(beta2, host, device)};
    const Link link{stream, copy, finish};
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
            MR_TRY(exchange(id, slot, out, in, link));
            changeLists(id, slot);
        }
        energies += m_window.cut(id).columns;
    }
    if (movedColumns == 0)
        return {};
    MR_TRY(clearScratch(stream, finish));
    return uploadLists(copy);
}

} // namespace mr
