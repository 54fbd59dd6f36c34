#include "core/plan/visit_emitter.h"

#include <algorithm>

namespace mr {

void VisitEmitter::list(GroupId group, std::uint8_t weightSlot)
{
    const GroupState& state = m_writer.group(group);
    // A tile of embedding or head comes with its weights.
    const std::int64_t room = m_writer.terms().tiles.largest() / kCutElements * kCutElements;
    const std::int64_t each = m_writer.terms().isTiled(group)
                                  ? std::min(m_layout.stateTileElements, room)
                                  : m_layout.stateTileElements;
    const std::int64_t end = state.stateVisits ? state.cuts.hostFirst : 0;
    for (std::int64_t first = 0; first < end;) {
        const std::int64_t count = elementsUpToCut(state.cuts, first, end, each);
        m_tiles.push_back({group, first, count, weightSlot, -1, {}});
        first += count;
    }
}

std::size_t VisitEmitter::slotsFor(std::size_t tile) const
{
    const bool isTiled = tile < m_tiles.size() && m_writer.terms().isTiled(m_tiles[tile].group);
    return static_cast<std::size_t>(
        isTiled ? std::min(m_layout.stateSlots, m_layout.weightSlots) : m_layout.stateSlots);
}

void VisitEmitter::fetchFirst(std::size_t tile)
{
    const std::size_t end = std::min(m_tiles.size(), tile + slotsFor(tile));
    for (; tile < end; ++tile)
        fetch(tile);
}

Task VisitEmitter::make(TaskKind kind, Lane lane, std::size_t tile) const
{
    Task task = m_writer.make(kind, lane, m_tiles[tile].group);
    const int slots = m_layout.stateSlots;
    task.slot = VisitSlots{static_cast<std::uint8_t>(tile % static_cast<std::size_t>(slots)),
        m_tiles[tile].weightSlot}
                    .packed(slots);
    task.firstElement = m_tiles[tile].first;
    task.elementCount = m_tiles[tile].count;
    task.stage = m_tiles[tile].stage;
    return task;
}

// Where weights stream, the gradient comes from the host as well, unless the update is behind
// backward.
void VisitEmitter::fetch(std::size_t tile)
{
    const GroupId group = m_tiles[tile].group;
    if (m_writer.terms().isTiled(group))
        fetchWeights(tile);
    Task task = make(TaskKind::FetchState, Lane::CopyIn, tile);
    const std::optional<Wait> read =
        m_writer.terms().isBehindBackward(group) ? m_disk.read(task) : std::nullopt;
    m_tiles[tile].stage = task.stage;
    m_tiles[tile].read = read;
    if (!m_writer.terms().fetchesState(group))
        return;
    m_writer.waitFor(read);
    if (m_writer.terms().streamsGroup(group) && !m_writer.terms().isBehindBackward(group))
        m_writer.waitFor(m_writer.group(group).gradient);
    m_writer.waitForCarried(group);
    m_writer.emit(task);
}

// To the slot of the tile that was updated last, or where that was in none, to the oldest.
void VisitEmitter::fetchWeights(std::size_t tile)
{
    const std::size_t slots = slotsFor(tile);
    std::optional<std::uint8_t> slot;
    if (tile >= slots && m_tiles[tile - slots].group == m_tiles[tile].group)
        slot = m_tiles[tile - slots].weightSlot;
    Task range = make(TaskKind::FetchWeights, Lane::CopyIn, tile);
    --range.version;
    m_tiles[tile].weightSlot = m_stream.bringRange(range, slot);
}

void VisitEmitter::update(std::size_t tile)
{
    m_writer.waitForCarried(m_tiles[tile].group);
    const Wait updated = m_writer.emit(make(TaskKind::UpdateOnDevice, Lane::Compute, tile));
    const Task store = make(TaskKind::StoreState, Lane::CopyOut, tile);
    m_writer.waitFor(updated);
    m_writer.waitFor(m_tiles[tile].read);
    const Wait stored = m_writer.emit(store);
    if (m_writer.terms().isTiled(m_tiles[tile].group))
        m_stream.keepSlot(m_tiles[tile].weightSlot, stored);
    if (store.stage >= 0)
        m_disk.write(store, stored);
}

} // namespace mr
