// What lives on disk: brought to places of host memory for the tasks that need it, and back.

#include "core/plan/plan_builder.h"

#include <algorithm>

namespace mr {

std::optional<Wait>& PlanBuilder::tileWait(std::vector<std::optional<Wait>>& of, const Task& task)
{
    return of[static_cast<std::size_t>(disk().tileOf(task.group, task.firstElement))];
}

const DiskRange& PlanBuilder::tileAt(const Task& task) const
{
    return disk().tiles[static_cast<std::size_t>(disk().tileOf(task.group, task.firstElement))];
}

// A slot is free once what was in it before is written and, of weights, copied. In a step that ends
// two windows a tile comes twice; that it is written in between is what turns of the slots imply.
std::optional<Wait> PlanBuilder::emitRead(StepPlan& plan, Task& update)
{
    const std::int32_t tile = disk().tileOf(update.group, update.firstElement);
    if (tile < 0)
        return {};
    const auto slots = static_cast<std::size_t>(disk().slots);
    update.stage = static_cast<std::int16_t>(m_tilesRead++ % slots);
    Task task = update;
    task.kind = TaskKind::ReadFromDisk;
    task.lane = Lane::DiskIn;
    task.elementCount = disk().tiles[static_cast<std::size_t>(tile)].count;
    waitFor(stageOf(task).disk);
    waitFor(stageOf(task).copy);
    waitFor(tileWait(m_tileSpills, task));
    waitFor(tileWait(m_tileWrites, task));
    waitForCarried(update.group);
    return emit(plan, task);
}

void PlanBuilder::emitWrite(StepPlan& plan, const Task& update, Wait updated)
{
    Task task = update;
    task.kind = TaskKind::WriteToDisk;
    task.lane = Lane::DiskOut;
    const std::int32_t tile = disk().tileOf(update.group, update.firstElement);
    task.elementCount = disk().tiles[static_cast<std::size_t>(tile)].count;
    waitFor(updated);
    stageOf(task).disk = tileWait(m_tileWrites, task) = emit(plan, task);
}

// Straight to the slot of the update, which is free when its state may come. Nothing else of the
// gradient's is kept on the host.
std::optional<Wait> PlanBuilder::emitSends(StepPlan& plan, const Task& update)
{
    const DiskRange& tile = tileAt(update);
    std::optional<Wait> sent;
    Task send = update;
    send.lane = Lane::CopyOut;
    if (tile.sendsWeights) {
        const auto slot = std::find_if(m_weightSlots.begin(), m_weightSlots.end(),
            [&](const WeightSlot& each) { return each.group == update.group; });
        const bool streams = slot != m_weightSlots.end();
        send.kind = TaskKind::SendWeights;
        send.slot = streams ? static_cast<std::uint8_t>(slot - m_weightSlots.begin()) : send.slot;
        sent = emitSend(plan, send);
        if (streams)
            slot->sent = sent;
    }
    if (tile.sendsGradient) {
        send.kind = TaskKind::SendGradient;
        send.slot = update.slot;
        sent = emitSend(plan, send);
        m_groups[static_cast<std::size_t>(update.group.value)].gradient = sent;
    }
    return sent;
}

Wait PlanBuilder::emitSend(StepPlan& plan, const Task& send)
{
    waitFor(m_groups[static_cast<std::size_t>(send.group.value)].finished);
    waitFor(stageOf(send).disk);
    waitFor(stageOf(send).copy);
    return emit(plan, send);
}

// The part of a finished gradient whose home is the disk, tile by tile. A place is free once what
// was in it before is written.
void PlanBuilder::emitSpills(StepPlan& plan, GroupId group, Wait finished)
{
    GroupState& state = m_groups[static_cast<std::size_t>(group.value)];
    if (state.cuts.gradientsFirst >= state.cuts.end)
        return;
    const auto first = static_cast<std::size_t>(disk().tileOf(group, state.cuts.gradientsFirst));
    for (std::size_t tile = first; tile < disk().tiles.size() && disk().tiles[tile].group == group;
         ++tile) {
        if (!disk().tiles[tile].has(DiskRegion::Gradient))
            continue;
        Task task = make(TaskKind::SendGradient, Lane::CopyOut, group, plan.step);
        task.firstElement = disk().tiles[tile].first;
        task.elementCount = disk().tiles[tile].count;
        task.stage = static_cast<std::int16_t>(
            disk().slots + disk().weightStages +
            static_cast<int>(m_spilled++ % static_cast<std::size_t>(disk().gradientStages)));
        waitFor(finished);
        waitFor(stageOf(task).disk);
        state.gradient = emit(plan, task);

        task.kind = TaskKind::SpillGradient;
        task.lane = Lane::DiskOut;
        waitFor(state.gradient);
        stageOf(task).disk = tileWait(m_tileSpills, task) = emit(plan, task);
    }
}

// What a fetch of weights from disk waits for, and its place: the one of the late update that is
// due, or another that they come to.
std::optional<Wait> PlanBuilder::bringTile(StepPlan& plan, Task& fetch)
{
    const auto due =
        std::find_if(m_dueTiles.begin(), m_dueTiles.end(), [&](const PendingUpdate& tile) {
            return tile.group == fetch.group && tile.firstElement == fetch.firstElement;
        });
    if (due != m_dueTiles.end()) {
        const LateTile late = emitHostTile(plan, *due);
        m_dueTiles.erase(due);
        fetch.stage = late.update.stage;
        return late.updated;
    }
    const auto stages = static_cast<std::size_t>(disk().weightStages);
    fetch.stage =
        static_cast<std::int16_t>(disk().slots + static_cast<int>(m_weightsRead++ % stages));
    Task task = fetch;
    task.kind = TaskKind::ReadWeights;
    task.lane = Lane::DiskWeights;
    task.slot = 0;
    waitFor(stageOf(task).copy);
    waitFor(tileWait(m_tileWrites, task));
    waitForCarried(fetch.group);
    return emit(plan, task);
}

std::int16_t PlanBuilder::nextBoundaryStage(const StepPlan& plan)
{
    const auto stages = static_cast<std::size_t>(plan.boundaryStages);
    return static_cast<std::int16_t>(
        disk().stages() + static_cast<int>(m_boundariesMoved++ % stages));
}

Wait PlanBuilder::emitBoundaryWrite(StepPlan& plan, const Task& save, Wait saved)
{
    Task task = save;
    task.kind = TaskKind::WriteBoundary;
    task.lane = Lane::DiskBoundaries;
    waitFor(saved);
    const Wait written = emit(plan, task);
    stageOf(task).disk = written;
    return written;
}

// To a place that what was there before has left for the disk or the device.
Wait PlanBuilder::emitBoundaryRead(StepPlan& plan, Task& load, std::optional<Wait> written)
{
    load.stage = nextBoundaryStage(plan);
    Task task = load;
    task.kind = TaskKind::ReadBoundary;
    task.lane = Lane::DiskBoundaries;
    waitFor(stageOf(task).disk);
    waitFor(stageOf(task).copy);
    waitFor(written);
    return emit(plan, task);
}

} // namespace mr
