#include "core/plan/visit_emitter.h"

#include <algorithm>

namespace mr {

void VisitEmitter::list(GroupId group)
{
    const GroupState& state = m_writer.group(group);
    const std::int64_t each = m_layout.stateTileElements;
    for (std::int64_t first = 0; state.stateVisits && first < state.cuts.hostFirst; first += each)
        m_tiles.push_back({group, first, std::min(each, state.cuts.hostFirst - first)});
}

void VisitEmitter::fetchFirst(std::size_t tile)
{
    const std::size_t end = std::min(m_tiles.size(), tile + kStateSlots);
    for (; tile < end; ++tile)
        fetch(tile);
}

Task VisitEmitter::make(TaskKind kind, Lane lane, std::size_t tile) const
{
    Task task = m_writer.make(kind, lane, m_tiles[tile].group);
    task.slot = static_cast<std::uint8_t>(tile % kStateSlots);
    task.firstElement = m_tiles[tile].first;
    task.elementCount = m_tiles[tile].count;
    return task;
}

// Where weights stream, the gradient comes from the host as well.
void VisitEmitter::fetch(std::size_t tile)
{
    const GroupId group = m_tiles[tile].group;
    if (m_writer.terms().streamsGroup(group))
        m_writer.waitFor(m_writer.group(group).gradient);
    m_writer.waitForCarried(group);
    m_writer.emit(make(TaskKind::FetchState, Lane::CopyIn, tile));
}

void VisitEmitter::update(std::size_t tile)
{
    m_writer.waitForCarried(m_tiles[tile].group);
    m_writer.emit(make(TaskKind::UpdateOnDevice, Lane::Compute, tile));
    m_writer.emit(make(TaskKind::StoreState, Lane::CopyOut, tile));
}

} // namespace mr
