#include "core/plan/stream_emitter.h"

#include <algorithm>

namespace mr {

void StreamEmitter::begin()
{
    m_open.assign(static_cast<std::size_t>(m_writer.terms().layers()), false);
    m_due.clear();
}

// The copy lane runs in order, so late updates come one layer after the other, and those of weights
// on disk right before their fetch, because they have few places on their way.
void StreamEmitter::open(GroupId group)
{
    const auto index = static_cast<std::size_t>(group.value);
    if (m_open[index] || !m_writer.terms().streams)
        return;
    m_open[index] = true;
    const std::int64_t hostFirst = m_writer.group(group).cuts.hostFirst;
    for (const PendingUpdate& update : m_writer.in().pending) {
        if (update.group != group || update.dueStep > m_writer.plan().step)
            continue;
        if (m_writer.terms().streamsGroup(group) && update.firstElement >= hostFirst)
            deferTiles(update);
        else
            m_updates.update(update);
    }
}

void StreamEmitter::deferTiles(const PendingUpdate& update)
{
    std::vector<PendingUpdate>& tiles = m_updates.listed();
    const std::int64_t weightsFirst = m_writer.group(update.group).cuts.weightsFirst;
    const std::size_t first = tiles.size();
    m_updates.list(update);
    for (std::size_t tile = first; tile < tiles.size(); ++tile) {
        if (tiles[tile].firstElement < weightsFirst)
            m_updates.updateTile(tiles[tile]);
        else
            m_due.push_back(tiles[tile]);
    }
    tiles.resize(first);
}

// Evicts the least recently used slot, so backward finds the last layers of forward still there.
std::uint8_t StreamEmitter::bring(GroupId group, StepIndex version)
{
    if (const std::optional<std::uint8_t> slot = m_slots.find(group))
        return *slot;
    const std::uint8_t slot = m_slots.oldest();
    if (m_writer.terms().fetchesFrozen(group))
        fetchFrozen(slot, group, version);
    else
        fetch(slot, group, version);
    m_slots.at(slot) = {group, -1, 0, 0};
    return slot;
}

std::uint8_t StreamEmitter::bringRange(const Task& range, std::optional<std::uint8_t> asked)
{
    if (const auto there = m_slots.find(range.group, range.firstElement, range.elementCount)) {
        m_slots.at(*there).lastUse = static_cast<std::int64_t>(m_writer.plan().tasks.size());
        return *there;
    }
    const std::uint8_t slot = asked ? *asked : m_slots.oldest();
    Task fetch = range;
    fetch.kind = TaskKind::FetchWeights;
    fetch.lane = Lane::CopyIn;
    fetch.micro = MicroBatch{-1};
    fetch.slot = slot;
    m_writer.waitForCarried(range.group);
    const Wait fetched = m_writer.emit(fetch);
    m_slots.at(slot) = {range.group, fetched.index(), range.firstElement, range.elementCount};
    return slot;
}

// No update changes them, so they wait for the slot alone, and for the disk. Packed ones come from
// memory in one piece.
void StreamEmitter::fetchFrozen(std::uint8_t slot, GroupId group, StepIndex version)
{
    const PlanTerms& terms = m_writer.terms();
    const std::int64_t end = terms.frozenElements(group);
    const std::int64_t diskFirst = terms.frozenDiskFirst(group);
    const bool isPacked = terms.placements[static_cast<std::size_t>(group.value)].packed;
    const std::int64_t most = isPacked ? end : terms.policy.tileElements;
    for (std::int64_t first = 0; first < end;) {
        Task task = m_writer.make(TaskKind::FetchFrozen, Lane::CopyIn, group, version);
        const bool onDisk = first >= diskFirst;
        task.slot = slot;
        task.firstElement = first;
        task.elementCount =
            onDisk ? m_disk.frozenCount(group, first) : std::min(most, diskFirst - first);
        first += task.elementCount;
        if (onDisk)
            m_writer.waitFor(m_disk.readFrozen(task));
        const Wait fetched = m_writer.emit(task);
        if (onDisk)
            m_disk.stageOf(task).copy = fetched;
    }
}

// Cuts the fetch as the host's updates are cut, so that each tile waits for its own update only.
Task StreamEmitter::nextTile(GroupId group, StepIndex version, std::int64_t first) const
{
    const HostCuts& cuts = m_writer.group(group).cuts;
    const std::int64_t tileElements = m_writer.terms().policy.tileElements;
    Task task = m_writer.make(TaskKind::FetchWeights, Lane::CopyIn, group, version);
    const std::int64_t end = first < cuts.lateFirst ? cuts.lateFirst : task.elementCount;
    task.firstElement = first;
    task.elementCount = first >= cuts.weightsFirst
                            ? hostTileElements(cuts, first, end, tileElements)
                            : std::min(tileElements, std::min(end, cuts.weightsFirst) - first);
    return task;
}

void StreamEmitter::fetch(std::uint8_t slot, GroupId group, StepIndex version)
{
    const std::int64_t weightsFirst = m_writer.group(group).cuts.weightsFirst;
    for (std::int64_t first = 0; first < m_writer.terms().elements(group);) {
        Task task = nextTile(group, version, first);
        task.slot = slot;
        const bool onDisk = first >= weightsFirst;
        first += task.elementCount;
        const std::optional<Wait> there =
            onDisk ? bringTile(task) : m_updates.lateUpdateOf(group, task.firstElement, first);
        m_writer.waitFor(there);
        m_writer.waitForCarried(group);
        const Wait fetched = m_writer.emit(task);
        if (onDisk)
            m_disk.stageOf(task).copy = fetched;
    }
}

Wait StreamEmitter::bringTile(Task& fetch)
{
    const auto due = std::find_if(m_due.begin(), m_due.end(), [&](const PendingUpdate& tile) {
        return tile.group == fetch.group && tile.firstElement == fetch.firstElement;
    });
    if (due == m_due.end())
        return m_disk.readWeights(fetch);
    const HostTile late = m_updates.updateTile(*due);
    m_due.erase(due);
    fetch.stage = late.update.stage;
    return late.updated;
}

} // namespace mr
