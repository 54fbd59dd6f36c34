#include "core/plan/step_updates.h"

#include <algorithm>
#include <tuple>

namespace mr {

void StepUpdates::makePending(Carry& out, bool flush)
{
    const auto isNow = [&](const PendingUpdate& update) {
        return flush ? update.isExact() : update.dueStep <= m_writer.plan().step;
    };
    const bool atOnce = flush || !m_writer.terms().streams; // else at the turn of the group
    for (const PendingUpdate& update : m_writer.in().pending)
        if (atOnce && isNow(update))
            m_updates.update(update);
    std::erase_if(out.pending, isNow);
}

void StepUpdates::listHostTiles(GroupId group)
{
    const HostCuts& cuts = m_writer.group(group).cuts;
    PendingUpdate update;
    update.group = group;
    update.version = m_writer.plan().step;
    update.dueStep = update.version + 1;
    update.firstElement = cuts.hostFirst;
    update.elementCount = cuts.lateFirst - cuts.hostFirst;
    m_updates.list(update);
}

void StepUpdates::leavePending(Carry& out) const
{
    for (GroupId group{0}; group.value < m_writer.terms().layers(); ++group.value) {
        PendingUpdate update;
        update.group = group;
        update.version = out.step;
        update.dueStep = out.step + 1;
        update.firstElement = m_writer.group(group).cuts.lateFirst;
        update.elementCount = m_writer.terms().elements(group) - update.firstElement;
        if (update.elementCount > 0)
            out.pending.push_back(update);
    }
    std::sort(
        out.pending.begin(), out.pending.end(), [](const PendingUpdate& a, const PendingUpdate& b) {
            return std::tie(a.dueStep, a.group, a.firstElement) <
                   std::tie(b.dueStep, b.group, b.firstElement);
        });
}

// Groups ascend, so that uploads come in the order the next forward reads them.
void StepUpdates::update()
{
    const int groups = m_writer.terms().layers();
    for (GroupId group{0}; group.value < groups; ++group.value) {
        listHostTiles(group);
        m_visits.list(group);
    }
    m_visits.fetchFirst(0); // beside the last of backward: before the norm is known
    m_gradients.sendScalars();
    for (GroupId group{0}; group.value < groups; ++group.value)
        updateStaying(group);
    updateTiles(0, 0);
}

// Updates the device's part of a group, if its state stays on the device.
void StepUpdates::updateStaying(GroupId group)
{
    const GroupState& state = m_writer.group(group);
    if (state.stateVisits || state.cuts.hostFirst == 0)
        return;
    PendingUpdate update;
    update.group = group;
    update.version = m_writer.plan().step;
    update.elementCount = state.cuts.hostFirst;
    m_updates.updateOnDevice(update);
}

// Host tiles and visiting tiles, from these on, take turns in proportion, so that both sides are
// done at the same time and the copy lane, which runs in order, serves both.
void StepUpdates::updateTiles(std::size_t firstHost, std::size_t firstVisit)
{
    const std::size_t onHost = m_updates.listed().size() - firstHost;
    const std::size_t visiting = m_visits.count() - firstVisit;
    const std::size_t slots = m_visits.slotsFor(firstVisit);
    std::size_t host = 0;
    std::size_t visit = 0;
    while (host < onHost || visit < visiting) {
        if (visit == visiting ||
            (host < onHost && (2 * host + 1) * visiting <= (2 * visit + 1) * onHost)) {
            m_updates.updateTile(m_updates.listed()[firstHost + host++]);
            continue;
        }
        m_visits.update(firstVisit + visit);
        if (visit + slots < visiting)
            m_visits.fetch(firstVisit + visit + slots);
        ++visit;
    }
}

// Uploads would stand in the copy lane before copies that backward needs. Behind the last backward
// nothing stands, and an upload held there would keep a place of the disk's.
bool StepUpdates::holdsUploads(GroupId group) const
{
    const HostCuts& cuts = m_writer.group(group).cuts;
    const bool copiesIn = m_writer.terms().streams || m_layout.stateTileElements > 0;
    return copiesIn && (group.value > 0 || cuts.weightsFirst == cuts.end);
}

// State that visits beside weights that stream comes at the end, as it does with exact clipping:
// it would stand in the copy lane before the weights of the next layer.
void StepUpdates::updateAtOnce(GroupId group)
{
    m_gradients.sendScalars(group);
    if (m_writer.terms().isBehindBackward(group))
        return updateBehindBackward(group);
    m_updates.holdUploads(holdsUploads(group));
    const std::size_t firstHost = m_updates.listed().size();
    const std::size_t firstVisit = m_visits.count();
    listHostTiles(group);
    if (!m_writer.terms().streams)
        m_visits.list(group);
    m_visits.fetchFirst(firstVisit);
    updateStaying(group);
    updateTiles(firstHost, firstVisit);
    m_updates.holdUploads(false);
}

// All of it on the device: its gradient and, where they stream, its weights are still there, and
// state came beside them, because there are slots for all of it. Weights of embedding and head that
// lie on the host come again, with the state of their tiles.
void StepUpdates::updateBehindBackward(GroupId group)
{
    const StepIndex step = m_writer.plan().step;
    VisitSlots slots;
    if (m_writer.terms().streamsGroup(group) && !m_writer.terms().isTiled(group))
        slots.weights = m_stream.bring(group, step - 1);
    const std::size_t firstVisit = m_visits.count();
    m_visits.list(group, slots.weights);
    m_visits.fetchFirst(firstVisit);
    Task prepare = m_writer.make(TaskKind::PrepareUpdate, Lane::Compute, group, step);
    prepare.slot = slots.packed(m_layout.stateSlots);
    if (!m_writer.plan().probes)
        m_writer.emit(prepare);
    updateStaying(group);
    updateTiles(m_updates.listed().size(), firstVisit);
}

void StepUpdates::endAtOnce()
{
    const std::size_t firstVisit = m_visits.count();
    for (GroupId group{0}; m_writer.terms().streams && group.value < m_writer.terms().layers();
         ++group.value)
        if (!m_writer.terms().isBehindBackward(group))
            m_visits.list(group);
    m_visits.fetchFirst(firstVisit);
    m_gradients.sendScalars();
    updateTiles(m_updates.listed().size(), firstVisit);
    for (const HostTile& tile : m_updates.held())
        uploadHeld(tile);
}

// The slot of its update has other tiles by then: weights on disk are read again.
void StepUpdates::uploadHeld(const HostTile& tile)
{
    if (tile.update.firstElement < m_writer.group(tile.update.group).cuts.weightsFirst)
        return m_updates.upload(tile.update, tile.updated);
    Task upload = tile.update;
    const Wait there = m_stream.bringTile(upload);
    m_updates.upload(upload, there);
}

} // namespace mr
