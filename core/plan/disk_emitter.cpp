#include "core/plan/disk_emitter.h"

namespace mr {

DiskEmitter::DiskEmitter(PlanWriter& writer, const WeightSlots& slots)
    : m_writer(writer)
    , m_slots(slots)
    , m_cuts{diskCuts(writer.terms().shape, writer.terms().placements, writer.terms().policy,
                 writer.terms().chosen),
          {}}
{
}

// Makes the cuts for updates that follow their gradients once: all steps of a run have such
// updates, or none has.
void DiskEmitter::begin(DiskSends sends)
{
    m_follows = sends.gradients;
    const bool isMade = m_sends == sends && m_cuts[1].tiles.size() == m_cuts[0].tiles.size();
    if (m_follows && !isMade) {
        const PlanTerms& terms = m_writer.terms();
        m_sends = sends;
        m_cuts[1] = diskCuts(terms.shape, terms.placements, terms.policy, terms.chosen, sends);
    }
    StepPlan& plan = m_writer.plan();
    plan.diskSlots = cuts().slots;
    plan.weightStages = cuts().weightStages;
    plan.gradientStages = cuts().gradientStages;
    plan.diskTileElements = cuts().tileElements;
    plan.normByGroup = sends.gradients;
    plan.sendsWeights = sends.weights;
    m_stages.assign(static_cast<std::size_t>(cuts().stages()), {});
    m_writes.assign(cuts().tiles.size(), std::nullopt);
    m_spills.assign(cuts().tiles.size(), std::nullopt);
    m_tilesRead = m_weightsRead = m_spilled = m_boundariesMoved = 0;
}

void DiskEmitter::openBoundaryStages(int stages)
{
    m_writer.plan().boundaryStages = stages;
    m_stages.resize(m_stages.size() + static_cast<std::size_t>(stages));
}

std::int32_t DiskEmitter::tileOf(const Task& task) const
{
    return cuts().tileOf(task.group, task.firstElement);
}

const DiskRange& DiskEmitter::rangeOf(const Task& task) const
{
    return cuts().tiles[static_cast<std::size_t>(tileOf(task))];
}

std::optional<Wait>& DiskEmitter::waitOf(TileWaits& waits, const Task& task)
{
    return waits[static_cast<std::size_t>(tileOf(task))];
}

// A slot is free once its old content is written to disk and its weights are copied to the device.
// A step that ends two windows reads a tile twice; the turns of the slots put its write in between.
std::optional<Wait> DiskEmitter::read(Task& update)
{
    if (tileOf(update) < 0)
        return {};
    const auto slots = static_cast<std::size_t>(cuts().slots);
    update.stage = static_cast<std::int16_t>(m_tilesRead++ % slots);
    Task task = update;
    task.kind = TaskKind::ReadFromDisk;
    task.lane = Lane::DiskIn;
    task.elementCount = rangeOf(update).count;
    m_writer.waitFor(stageOf(task).disk);
    m_writer.waitFor(stageOf(task).copy);
    m_writer.waitFor(waitOf(m_spills, task));
    m_writer.waitFor(waitOf(m_writes, task));
    m_writer.waitForCarried(update.group);
    return m_writer.emit(task);
}

void DiskEmitter::write(const Task& update, Wait updated)
{
    Task task = update;
    task.kind = TaskKind::WriteToDisk;
    task.lane = Lane::DiskOut;
    task.elementCount = rangeOf(update).count;
    m_writer.waitFor(updated);
    stageOf(task).disk = waitOf(m_writes, task) = m_writer.emit(task);
}

// Sends straight to the slot of the update, which is free when its state may come. The host has no
// other room for this gradient.
std::optional<Wait> DiskEmitter::sendTo(const Task& update)
{
    const DiskRange& tile = rangeOf(update);
    std::optional<Wait> sent;
    Task task = update;
    task.lane = Lane::CopyOut;
    if (tile.sendsWeights) {
        task.kind = TaskKind::SendWeights;
        task.slot = m_slots.find(update.group).value_or(task.slot);
        sent = send(task);
    }
    if (tile.sendsGradient) {
        task.kind = TaskKind::SendGradient;
        task.slot = update.slot;
        sent = send(task);
        m_writer.group(update.group).gradient = sent;
    }
    return sent;
}

Wait DiskEmitter::send(const Task& task)
{
    m_writer.waitFor(m_writer.group(task.group).finished);
    m_writer.waitFor(stageOf(task).disk);
    m_writer.waitFor(stageOf(task).copy);
    return m_writer.emit(task);
}

void DiskEmitter::spill(GroupId group, Wait finished)
{
    const HostCuts& at = m_writer.group(group).cuts;
    if (at.gradientsFirst >= at.end)
        return;
    const std::vector<DiskRange>& tiles = cuts().tiles;
    for (auto tile = static_cast<std::size_t>(cuts().tileOf(group, at.gradientsFirst));
         tile < tiles.size() && tiles[tile].group == group; ++tile)
        if (tiles[tile].has(DiskRegion::Gradient))
            spillTile(group, tiles[tile], finished);
}

// A place is free once its old content is on disk.
void DiskEmitter::spillTile(GroupId group, const DiskRange& tile, Wait finished)
{
    Task task = m_writer.make(TaskKind::SendGradient, Lane::CopyOut, group);
    task.firstElement = tile.first;
    task.elementCount = tile.count;
    const auto stages = static_cast<std::size_t>(cuts().gradientStages);
    task.stage = static_cast<std::int16_t>(
        cuts().slots + cuts().weightStages + static_cast<int>(m_spilled++ % stages));
    m_writer.waitFor(finished);
    m_writer.waitFor(stageOf(task).disk);
    const Wait sent = m_writer.emit(task);
    m_writer.group(group).gradient = sent;

    task.kind = TaskKind::SpillGradient;
    task.lane = Lane::DiskOut;
    m_writer.waitFor(sent);
    stageOf(task).disk = waitOf(m_spills, task) = m_writer.emit(task);
}

// Takes the next place, which is free once its old content is copied to the device.
Task DiskEmitter::readTo(Task& fetch, TaskKind kind)
{
    const auto stages = static_cast<std::size_t>(cuts().weightStages);
    fetch.stage =
        static_cast<std::int16_t>(cuts().slots + static_cast<int>(m_weightsRead++ % stages));
    Task task = fetch;
    task.kind = kind;
    task.lane = Lane::DiskWeights;
    task.slot = 0;
    m_writer.waitFor(stageOf(task).copy);
    return task;
}

Wait DiskEmitter::readFrozen(Task& fetch)
{
    return m_writer.emit(readTo(fetch, TaskKind::ReadFrozen));
}

std::int64_t DiskEmitter::frozenCount(GroupId group, std::int64_t first) const
{
    return cuts().frozen[static_cast<std::size_t>(cuts().frozenTileOf(group, first))].count;
}

Wait DiskEmitter::readWeights(Task& fetch)
{
    const Task task = readTo(fetch, TaskKind::ReadWeights);
    m_writer.waitFor(waitOf(m_writes, task));
    m_writer.waitForCarried(fetch.group);
    return m_writer.emit(task);
}

std::int16_t DiskEmitter::nextBoundaryStage()
{
    const auto stages = static_cast<std::size_t>(m_writer.plan().boundaryStages);
    return static_cast<std::int16_t>(
        cuts().stages() + static_cast<int>(m_boundariesMoved++ % stages));
}

void DiskEmitter::writeBoundary(const Task& save, Wait saved)
{
    Task task = save;
    task.kind = TaskKind::WriteBoundary;
    task.lane = Lane::DiskBoundaries;
    m_writer.waitFor(saved);
    stageOf(task).disk = m_writer.emit(task);
}

// Reads to the next place, once its old content has gone to the disk or the device.
Wait DiskEmitter::readBoundary(Task& load)
{
    load.stage = nextBoundaryStage();
    Task task = load;
    task.kind = TaskKind::ReadBoundary;
    task.lane = Lane::DiskBoundaries;
    m_writer.waitFor(stageOf(task).disk);
    m_writer.waitFor(stageOf(task).copy);
    return m_writer.emit(task);
}

} // namespace mr
