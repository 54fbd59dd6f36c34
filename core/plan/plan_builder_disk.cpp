// What lives on disk: brought to places of host memory for the tasks that need it, and back.

#include "core/plan/plan_builder.h"

#include <algorithm>

namespace mr {

std::optional<Wait>& PlanBuilder::tileWait(std::vector<std::optional<Wait>>& of, const Task& task)
{
    return of[static_cast<std::size_t>(m_disk.tileOf(task.group, task.firstElement))];
}

// A slot is free once what was in it before is written and, of weights, copied. In a step that ends
// two windows a tile comes twice; that it is written in between is what turns of the slots imply.
std::optional<Wait> PlanBuilder::emitRead(StepPlan& plan, Task& update)
{
    const std::int32_t tile = m_disk.tileOf(update.group, update.firstElement);
    if (tile < 0)
        return {};
    const auto slots = static_cast<std::size_t>(m_disk.slots);
    update.stage = static_cast<std::int16_t>(m_tilesRead++ % slots);
    Task task = update;
    task.kind = TaskKind::ReadFromDisk;
    task.lane = Lane::DiskIn;
    task.elementCount = m_disk.tiles[static_cast<std::size_t>(tile)].count;
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
    const std::int32_t tile = m_disk.tileOf(update.group, update.firstElement);
    task.elementCount = m_disk.tiles[static_cast<std::size_t>(tile)].count;
    waitFor(updated);
    stageOf(task).disk = tileWait(m_tileWrites, task) = emit(plan, task);
}

// The part of a finished gradient whose home is the disk, tile by tile. A place is free once what
// was in it before is written.
void PlanBuilder::emitSpills(StepPlan& plan, GroupId group, Wait finished)
{
    GroupState& state = m_groups[static_cast<std::size_t>(group.value)];
    if (state.cuts.gradientsFirst >= state.cuts.end)
        return;
    const auto first = static_cast<std::size_t>(m_disk.tileOf(group, state.cuts.gradientsFirst));
    for (std::size_t tile = first; tile < m_disk.tiles.size() && m_disk.tiles[tile].group == group;
         ++tile) {
        Task task = make(TaskKind::SendGradient, Lane::CopyOut, group, plan.step);
        task.firstElement = m_disk.tiles[tile].first;
        task.elementCount = m_disk.tiles[tile].count;
        task.stage = static_cast<std::int16_t>(
            m_disk.slots + m_disk.weightStages +
            static_cast<int>(m_spilled++ % static_cast<std::size_t>(m_disk.gradientStages)));
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
    const auto stages = static_cast<std::size_t>(m_disk.weightStages);
    fetch.stage =
        static_cast<std::int16_t>(m_disk.slots + static_cast<int>(m_weightsRead++ % stages));
    Task task = fetch;
    task.kind = TaskKind::ReadWeights;
    task.lane = Lane::DiskWeights;
    task.slot = 0;
    waitFor(stageOf(task).copy);
    waitFor(tileWait(m_tileWrites, task));
    waitForCarried(fetch.group);
    return emit(plan, task);
}

} // namespace mr
