// Weights and boundaries whose home is the host: brought to the device for the layers that read
// them.

#include "core/plan/plan_builder.h"

#include <algorithm>
#include <utility>

namespace mr {

bool PlanBuilder::streams(GroupId group) const
{
    return m_placements[static_cast<std::size_t>(group.value)].weights != Tier::Device;
}

// The slot that has the group's weights; else they come to the one whose last use is longest ago.
// So backward finds the last layers of forward still there.
std::uint8_t PlanBuilder::bringWeights(StepPlan& plan, GroupId group, StepIndex version)
{
    auto slot = std::find_if(m_weightSlots.begin(), m_weightSlots.end(),
        [&](const WeightSlot& other) { return other.group == group; });
    if (slot == m_weightSlots.end()) {
        const auto lastUse = [](const WeightSlot& other) {
            return other.reader ? static_cast<std::int64_t>(other.reader->index()) : -1;
        };
        slot = std::min_element(m_weightSlots.begin(), m_weightSlots.end(),
            [&](const WeightSlot& a, const WeightSlot& b) { return lastUse(a) < lastUse(b); });
        emitWeightFetch(
            plan, static_cast<std::size_t>(slot - m_weightSlots.begin()), group, version);
    }
    return static_cast<std::uint8_t>(slot - m_weightSlots.begin());
}

// Cut as the host's updates are, so that each tile waits for its own only.
void PlanBuilder::emitWeightFetch(
    StepPlan& plan, std::size_t slot, GroupId group, StepIndex version)
{
    WeightSlot& to = m_weightSlots[slot];
    const auto index = static_cast<std::size_t>(group.value);
    const HostCuts& cuts = m_groups[index].cuts;
    const std::int64_t elements = m_shape.groups[index].elements;
    std::int64_t first = 0;
    while (first < elements) {
        const bool onDisk = first >= cuts.weightsFirst;
        const std::int64_t end = first < cuts.lateFirst ? cuts.lateFirst : elements;
        Task task = make(TaskKind::FetchWeights, Lane::CopyIn, group, version);
        task.slot = static_cast<std::uint8_t>(slot);
        task.firstElement = first;
        task.elementCount =
            onDisk ? hostTileElements(cuts, first, end, m_policy.tileElements)
                   : std::min(m_policy.tileElements, std::min(end, cuts.weightsFirst) - first);
        first += task.elementCount;
        const std::optional<Wait> there =
            onDisk ? bringTile(plan, task) : updateBefore(group, task.firstElement, first);
        waitFor(there);
        waitFor(to.reader);
        waitFor(to.sent);
        waitForCarried(group);
        to.fetch = emit(plan, task);
        if (onDisk)
            stageOf(task).copy = to.fetch;
    }
    to.group = group;
    to.reader.reset();
    to.sent.reset();
}

// The last update of this step before its forward; those before it are over then, too.
std::optional<Wait> PlanBuilder::updateBefore(
    GroupId group, std::int64_t first, std::int64_t end) const
{
    const std::span<const LateTile> tiles = lateTilesOf(group);
    for (auto tile = tiles.rbegin(); tile != tiles.rend(); ++tile) {
        const Task& update = tile->update;
        if (update.firstElement < end && first < update.firstElement + update.elementCount)
            return tile->updated;
    }
    return {};
}

std::span<const PlanBuilder::LateTile> PlanBuilder::lateTilesOf(GroupId group) const
{
    const auto begin = std::partition_point(m_lateTiles.begin(), m_lateTiles.end(),
        [&](const LateTile& tile) { return tile.update.group < group; });
    const auto end = std::find_if(
        begin, m_lateTiles.end(), [&](const LateTile& tile) { return tile.update.group != group; });
    return {begin, end};
}

// Late updates come at the turn of their layer: the copy lane runs in order, and those of weights
// on disk right before their fetch, because they have few places on their way.
void PlanBuilder::beginGroup(StepPlan& plan, GroupId group)
{
    GroupState& state = m_groups[static_cast<std::size_t>(group.value)];
    if (std::exchange(state.begun, true) || !m_streams)
        return;
    for (const PendingUpdate& update : m_in.pending) {
        if (update.group != group || update.dueStep > plan.step)
            continue;
        const bool waits = streams(group) && update.firstElement >= state.cuts.hostFirst;
        if (!waits) {
            emitUpdate(plan, update);
            continue;
        }
        const std::size_t first = m_hostTiles.size();
        cutForHost(update);
        for (std::size_t tile = first; tile < m_hostTiles.size(); ++tile) {
            if (m_hostTiles[tile].firstElement < state.cuts.weightsFirst)
                emitHostTile(plan, m_hostTiles[tile]);
            else
                m_dueTiles.push_back(m_hostTiles[tile]);
        }
        m_hostTiles.resize(first);
    }
}

// Backward reads the last two while they are still there.
bool PlanBuilder::isSaved(const StepPlan& plan, int boundary) const
{
    const bool training = plan.step != m_in.step;
    return training && boundary + 2 < m_shape.layers() - 1;
}

PlanBuilder::BoundarySlot& PlanBuilder::boundarySlot(
    const StepPlan& plan, int boundary, MicroBatch micro)
{
    return m_boundarySlots[static_cast<std::size_t>(
        2 * (micro.value % plan.inFlight) + boundary % 2)];
}

std::optional<Wait>& PlanBuilder::savedBoundary(
    const StepPlan& plan, int boundary, MicroBatch micro)
{
    return m_savedBoundaries[static_cast<std::size_t>(
        m_shape.layers() * (micro.value % plan.inFlight) + boundary)];
}

// The number of its tile; -1: its home is the host.
std::int32_t PlanBuilder::boundaryTile(const StepPlan& plan, int boundary, MicroBatch micro) const
{
    return m_training.boundaries.tileOf(boundary, micro.value % plan.inFlight);
}

// What the item must wait for before it reads its input and writes its output.
std::optional<Wait> PlanBuilder::bringBoundary(StepPlan& plan, const WorkItem& item)
{
    const int layer = item.layer.value;
    const bool isHead = layer == m_shape.layers() - 1;
    if (item.pass == WorkItem::Pass::Forward)
        return isHead ? std::nullopt : boundarySlot(plan, layer, item.micro).save;
    if (layer == 0 || !isSaved(plan, layer - 1))
        return {};
    Task load = make(TaskKind::LoadBoundary, Lane::CopyIn, GroupId{layer - 1}, plan.step);
    load.micro = item.micro;
    load.elementCount = 0;
    std::optional<Wait> there = savedBoundary(plan, layer - 1, item.micro);
    const bool onDisk = boundaryTile(plan, layer - 1, item.micro) >= 0;
    if (onDisk)
        there = emitBoundaryRead(plan, load, there);
    waitFor(boundarySlot(plan, layer - 1, item.micro).reader);
    waitFor(there);
    const Wait loaded = emit(plan, load);
    if (onDisk)
        stageOf(load).copy = loaded;
    return loaded;
}

void PlanBuilder::leaveBoundary(StepPlan& plan, const WorkItem& item, Wait done)
{
    const int layer = item.layer.value;
    if (layer > 0)
        boundarySlot(plan, layer - 1, item.micro).reader = done;
    if (item.pass == WorkItem::Pass::Backward || layer == m_shape.layers() - 1)
        return;
    BoundarySlot& slot = boundarySlot(plan, layer, item.micro);
    slot.reader = done;
    if (!isSaved(plan, layer))
        return;
    Task save = make(TaskKind::SaveBoundary, Lane::CopyOut, GroupId{layer}, plan.step);
    save.micro = item.micro;
    save.elementCount = 0;
    const bool onDisk = boundaryTile(plan, layer, item.micro) >= 0;
    if (onDisk) {
        save.stage = nextBoundaryStage(plan);
        waitFor(stageOf(save).disk);
        waitFor(stageOf(save).copy);
    }
    waitFor(done);
    const Wait saved = emit(plan, save);
    slot.save = saved;
    savedBoundary(plan, layer, item.micro) = onDisk ? emitBoundaryWrite(plan, save, saved) : saved;
}

} // namespace mr
