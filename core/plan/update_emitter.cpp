#include "core/plan/update_emitter.h"

#include <algorithm>

namespace mr {

void UpdateEmitter::begin()
{
    m_listed.clear();
    m_late.clear();
    m_held.clear();
    m_holds = false;
}

void UpdateEmitter::update(const PendingUpdate& update)
{
    if (update.firstElement < m_writer.group(update.group).cuts.hostFirst)
        return updateOnDevice(update);
    const std::size_t first = m_listed.size();
    list(update);
    for (std::size_t tile = first; tile < m_listed.size(); ++tile)
        updateTile(m_listed[tile]);
    m_listed.resize(first);
}

void UpdateEmitter::updateOnDevice(const PendingUpdate& update)
{
    Task task =
        m_writer.make(TaskKind::UpdateOnDevice, Lane::Compute, update.group, update.version);
    task.firstElement = update.firstElement;
    task.elementCount = update.elementCount;
    m_writer.waitForCarried(update.group);
    m_writer.emit(task);
}

void UpdateEmitter::list(const PendingUpdate& update)
{
    const HostCuts& cuts = m_writer.group(update.group).cuts;
    const std::int64_t end = update.firstElement + update.elementCount;
    for (std::int64_t first = update.firstElement; first < end;) {
        PendingUpdate& tile = m_listed.emplace_back(update);
        tile.firstElement = first;
        tile.elementCount =
            hostTileElements(cuts, first, end, m_writer.terms().policy.tileElements);
        first += tile.elementCount;
    }
}

HostTile UpdateEmitter::updateTile(const PendingUpdate& tile)
{
    Task task = m_writer.make(TaskKind::UpdateOnHost, Lane::Host, tile.group, tile.version);
    task.firstElement = tile.firstElement;
    task.elementCount = tile.elementCount;
    const std::optional<Wait> read = m_disk.read(task);
    const std::optional<Wait> sent = read ? m_disk.sendTo(task) : std::nullopt;
    m_writer.waitFor(read);
    m_writer.waitFor(sent);
    m_writer.waitFor(m_gradients.scalars());
    m_writer.waitFor(m_writer.group(tile.group).gradient);
    m_writer.waitForCarried(tile.group);
    const Wait updated = m_writer.emit(task);
    if (read)
        m_disk.write(task, updated);
    const bool streams = m_writer.terms().streamsGroup(tile.group);
    if (!streams && m_holds)
        m_held.push_back({task, updated});
    else if (!streams)
        upload(task, updated);
    else if (tile.version < m_writer.plan().step)
        m_late.push_back({task, updated});
    return {task, updated};
}

// Uploads the weights that `update` made.
void UpdateEmitter::upload(const Task& update, Wait updated)
{
    GroupState& group = m_writer.group(update.group);
    Task task = update;
    task.kind = TaskKind::FetchWeights;
    task.lane = Lane::CopyIn;
    if (update.firstElement < group.cuts.weightsFirst)
        task.stage = -1;
    m_writer.waitFor(updated);
    m_writer.waitFor(group.reader);
    m_writer.waitForCarried(update.group);
    group.upload = m_writer.emit(task);
    if (task.stage >= 0)
        m_disk.stageOf(task).copy = group.upload;
}

// The last one is enough: Host runs in order, so the tiles before it are over as well.
std::optional<Wait> UpdateEmitter::lateUpdateOf(
    GroupId group, std::int64_t first, std::int64_t end) const
{
    const auto begin = std::partition_point(m_late.begin(), m_late.end(),
        [&](const HostTile& tile) { return tile.update.group < group; });
    const auto behind = std::find_if(
        begin, m_late.end(), [&](const HostTile& tile) { return tile.update.group != group; });
    for (auto tile = behind; tile != begin;) {
        const Task& update = (--tile)->update;
        if (update.firstElement < end && first < update.firstElement + update.elementCount)
            return tile->updated;
    }
    return {};
}

} // namespace mr
