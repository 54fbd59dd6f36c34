// The tasks of a plan and what they wait for.

#include "core/plan/plan_builder.h"

#include <algorithm>
#include <string>

namespace mr {

Task PlanBuilder::make(TaskKind kind, Lane lane, GroupId group, StepIndex version) const
{
    Task task;
    task.kind = kind;
    task.lane = lane;
    task.group = group;
    task.version = version;
    if (group.value >= 0)
        task.elementCount = m_shape.groups[static_cast<std::size_t>(group.value)].elements;
    return task;
}

void PlanBuilder::waitFor(std::optional<Wait> wait)
{
    if (wait)
        m_candidates.push_back(*wait);
}

void PlanBuilder::waitForCarried(GroupId group)
{
    for (std::size_t i = 0; i < m_in.unfinished.size(); ++i) {
        const GroupId other = m_in.unfinished[i].task.group;
        if (group.value < 0 && other.value >= 0 && streams(other))
            continue; // what brings its weights waits
        if (group.value < 0 || other.value < 0 || other == group)
            m_candidates.push_back(Wait::onCarried(static_cast<TaskIndex>(i)));
    }
}

Wait PlanBuilder::emit(StepPlan& plan, const Task& task)
{
    m_clocks.begin(task.lane);
    // The latest first: what it implies is then known, and earlier waits never imply later ones.
    std::sort(m_candidates.begin(), m_candidates.end(),
        [this](Wait a, Wait b) { return m_clocks.numberOf(a) > m_clocks.numberOf(b); });
    const std::size_t firstWait = plan.waits.size();
    for (const Wait wait : m_candidates) {
        if (m_clocks.knows(wait))
            continue;
        m_clocks.join(wait);
        plan.waits.push_back(wait);
    }
    m_candidates.clear();
    m_clocks.finish();
    std::reverse(plan.waits.begin() + static_cast<std::ptrdiff_t>(firstWait), plan.waits.end());
    Task& added = plan.tasks.emplace_back(task);
    added.firstWait = static_cast<std::uint32_t>(firstWait);
    added.waitCount = static_cast<std::uint16_t>(plan.waits.size() - firstWait);
    return Wait::onTask(static_cast<TaskIndex>(plan.tasks.size() - 1));
}

void PlanBuilder::emitPending(StepPlan& plan, Carry& out, bool flush)
{
    const auto isNow = [&](const PendingUpdate& update) {
        return flush ? update.isExact() : update.dueStep <= plan.step;
    };
    const bool atOnce = flush || !m_streams; // else when the turn of the group comes
    for (const PendingUpdate& update : m_in.pending)
        if (atOnce && isNow(update))
            emitUpdate(plan, update);
    std::erase_if(out.pending, isNow);
}

void PlanBuilder::emitUpdate(StepPlan& plan, const PendingUpdate& update)
{
    const GroupState& group = m_groups[static_cast<std::size_t>(update.group.value)];
    if (update.firstElement < group.cuts.hostFirst)
        emitDeviceUpdate(plan, update);
    else
        emitHostUpdate(plan, update);
}

void PlanBuilder::emitDeviceUpdate(StepPlan& plan, const PendingUpdate& update)
{
    Task task = make(TaskKind::UpdateOnDevice, Lane::Compute, update.group, update.version);
    task.firstElement = update.firstElement;
    task.elementCount = update.elementCount;
    waitForCarried(update.group);
    emit(plan, task);
}

void PlanBuilder::emitHostUpdate(StepPlan& plan, const PendingUpdate& update)
{
    const std::size_t first = m_hostTiles.size();
    cutForHost(update);
    for (std::size_t tile = first; tile < m_hostTiles.size(); ++tile)
        emitHostTile(plan, m_hostTiles[tile]);
    m_hostTiles.resize(first);
}

void PlanBuilder::cutForHost(const PendingUpdate& update)
{
    const HostCuts& cuts = m_groups[static_cast<std::size_t>(update.group.value)].cuts;
    const std::int64_t end = update.firstElement + update.elementCount;
    for (std::int64_t first = update.firstElement; first < end;) {
        PendingUpdate& tile = m_hostTiles.emplace_back(update);
        tile.firstElement = first;
        tile.elementCount = hostTileElements(cuts, first, end, m_policy.tileElements);
        first += tile.elementCount;
    }
}

PlanBuilder::LateTile PlanBuilder::emitHostTile(StepPlan& plan, const PendingUpdate& tile)
{
    const GroupState& group = m_groups[static_cast<std::size_t>(tile.group.value)];
    Task task = make(TaskKind::UpdateOnHost, Lane::Host, tile.group, tile.version);
    task.firstElement = tile.firstElement;
    task.elementCount = tile.elementCount;
    const std::optional<Wait> read = emitRead(plan, task);
    const std::optional<Wait> sent = read ? emitSends(plan, task) : std::nullopt;
    waitFor(read);
    waitFor(sent);
    waitFor(m_scalars);
    waitFor(group.gradient);
    waitForCarried(tile.group);
    const Wait updated = emit(plan, task);
    if (read)
        emitWrite(plan, task, updated);
    if (!streams(tile.group) && m_holdsUploads)
        m_heldUploads.push_back({task, updated});
    else if (!streams(tile.group))
        emitUpload(plan, task, updated);
    else if (tile.version < plan.step)
        m_lateTiles.push_back({task, updated});
    return {task, updated};
}

// Of what `update` updated.
void PlanBuilder::emitUpload(StepPlan& plan, const Task& update, Wait updated)
{
    GroupState& group = m_groups[static_cast<std::size_t>(update.group.value)];
    Task task = update;
    task.kind = TaskKind::FetchWeights;
    task.lane = Lane::CopyIn;
    if (update.firstElement < group.cuts.weightsFirst)
        task.stage = -1;
    waitFor(updated);
    waitFor(group.reader);
    waitForCarried(update.group);
    group.upload = emit(plan, task);
    if (task.stage >= 0)
        stageOf(task).copy = group.upload;
}

// An upload that comes when no layer needs the copy lane. Its update's slot has other tiles by
// then: what is on disk comes from there.
void PlanBuilder::emitHeldUpload(StepPlan& plan, const LateTile& tile)
{
    const GroupState& group = m_groups[static_cast<std::size_t>(tile.update.group.value)];
    if (tile.update.firstElement < group.cuts.weightsFirst)
        return emitUpload(plan, tile.update, tile.updated);
    Task upload = tile.update;
    const std::optional<Wait> there = bringTile(plan, upload);
    emitUpload(plan, upload, there.value_or(tile.updated));
}

// A slot is free again when the tile before in it is home. Where weights stream, the gradient comes
// from the host as well.
void PlanBuilder::emitStateFetch(StepPlan& plan, std::size_t index)
{
    StateTile& tile = m_stateTiles[index];
    Task task = make(TaskKind::FetchState, Lane::CopyIn, tile.group, plan.step);
    task.slot = static_cast<std::uint8_t>(index % kStateSlots);
    task.firstElement = tile.first;
    task.elementCount = tile.count;
    if (index >= kStateSlots)
        waitFor(m_stateTiles[index - kStateSlots].store);
    if (streams(tile.group))
        waitFor(m_groups[static_cast<std::size_t>(tile.group.value)].gradient);
    waitForCarried(tile.group);
    tile.fetch = emit(plan, task);
}

void PlanBuilder::emitStateUpdate(StepPlan& plan, std::size_t index)
{
    StateTile& tile = m_stateTiles[index];
    Task task = make(TaskKind::UpdateOnDevice, Lane::Compute, tile.group, plan.step);
    task.slot = static_cast<std::uint8_t>(index % kStateSlots);
    task.firstElement = tile.first;
    task.elementCount = tile.count;
    waitFor(tile.fetch);
    waitForCarried(tile.group);
    const Wait updated = emit(plan, task);

    task.kind = TaskKind::StoreState;
    task.lane = Lane::CopyOut;
    waitFor(updated);
    tile.store = emit(plan, task);
}

Wait PlanBuilder::emitFetch(StepPlan& plan, std::optional<Wait> bufferReader)
{
    Task task = make(TaskKind::FetchBatch, Lane::CopyIn, GroupId{}, plan.step);
    task.micro = MicroBatch{static_cast<std::int32_t>(m_fetches.size())};
    waitFor(bufferReader);
    m_fetches.push_back(emit(plan, task));
    return m_fetches.back();
}

void PlanBuilder::emitFirstFetches(StepPlan& plan)
{
    for (int m = 0; m < std::min(plan.batchBuffers, plan.microBatches); ++m)
        emitFetch(plan, {});
}

Status PlanBuilder::emitWork(StepPlan& plan, std::span<const WorkItem> order, bool training)
{
    const int head = m_shape.layers() - 1;
    for (GroupState& group : m_groups)
        group.backwardLeft = plan.microBatches;
    const StepIndex version = training ? plan.step - 1 : plan.step;
    for (const WorkItem& item : order) {
        const bool backward = item.pass == WorkItem::Pass::Backward;
        if (training && !backward && item.layer.value == head)
            continue; // the head's backward computes the losses too
        if (item.micro.value >= static_cast<int>(m_fetches.size())) {
            return Status::error(ErrorKind::Internal,
                "plan: the order of work reaches micro-batch " + std::to_string(item.micro.value) +
                    " before its batch buffer is free");
        }
        const Wait done = emitLayer(plan, item, version);
        const bool lastReader =
            training ? backward && item.layer.value == 0 : item.layer.value == head;
        if (lastReader && static_cast<int>(m_fetches.size()) < plan.microBatches)
            emitFetch(plan, done);
        if (backward && --m_groups[static_cast<std::size_t>(item.layer.value)].backwardLeft == 0) {
            emitFinishedGradient(plan, GroupId{item.layer.value});
            if (plan.normByGroup)
                emitEagerUpdates(plan, GroupId{item.layer.value});
        }
    }
    return {};
}

Wait PlanBuilder::emitLayer(StepPlan& plan, const WorkItem& item, StepIndex version)
{
    const GroupId group{item.layer.value};
    const bool readsEmbedding = m_shape.tiedHead && item.layer.value == m_shape.layers() - 1;
    GroupState& own = m_groups[static_cast<std::size_t>(group.value)];
    Task task = make(item.pass == WorkItem::Pass::Forward ? TaskKind::Forward : TaskKind::Backward,
        Lane::Compute, group, version);
    task.micro = item.micro;
    beginGroup(plan, group);
    if (streams(group))
        task.slot = bringWeights(plan, group, version);
    if (plan.savesBoundaries)
        waitFor(bringBoundary(plan, item));
    if (takesTurns(plan, group))
        waitFor(bringActivations(plan, task));
    if (streams(group))
        waitFor(m_weightSlots[task.slot].fetch);
    waitFor(m_fetches[static_cast<std::size_t>(item.micro.value)]);
    waitFor(own.upload);
    // In F32; else a rounded copy is, or a packed one.
    const bool sumIsSent = plan.gradients.finishedSlots == 0 && !m_byColumns;
    if (item.pass == WorkItem::Pass::Backward && own.backwardLeft == plan.microBatches && sumIsSent)
        waitFor(sendOfOccupant(group, plan.gradients.sumSlots));
    if (readsEmbedding)
        waitFor(m_groups[0].upload);
    if (item.layer.value == 0)
        waitForCarried(GroupId{});
    const Wait done = emit(plan, task);
    own.reader = done;
    if (streams(group))
        m_weightSlots[task.slot].reader = done;
    if (plan.savesBoundaries)
        leaveBoundary(plan, item, done);
    if (takesTurns(plan, group))
        leaveActivations(plan, task, done);
    if (readsEmbedding)
        m_groups[0].reader = done;
    return done;
}

// Blocks come in descending order and take turns: the one before in a slot is `slots` above.
std::optional<Wait> PlanBuilder::sendOfOccupant(GroupId group, int slots) const
{
    const int above = group.value + slots;
    if (slots == 0 || group.value == 0 || above >= m_shape.layers() - 1)
        return {};
    return m_groups[static_cast<std::size_t>(above)].gradient;
}

void PlanBuilder::emitFinishedGradient(StepPlan& plan, GroupId group)
{
    if (m_byColumns)
        return emitPackedGradient(plan, group);
    GroupState& state = m_groups[static_cast<std::size_t>(group.value)];
    waitFor(sendOfOccupant(group, plan.gradients.finishedSlots));
    const Wait finished =
        emit(plan, make(TaskKind::FinishGradient, Lane::Compute, group, plan.step));
    state.finished = finished;
    Task send = make(TaskKind::SendGradient, Lane::CopyOut, group, plan.step);
    send.firstElement = state.sentFirst;
    send.elementCount = state.cuts.gradientsFirst - state.sentFirst;
    if (send.elementCount > 0) {
        waitFor(finished);
        state.gradient = emit(plan, send);
    }
    emitSpills(plan, group, finished);
    emit(plan, make(TaskKind::NormPart, Lane::Compute, group, plan.step));
}

void PlanBuilder::emitScalars(StepPlan& plan, bool training)
{
    if (training)
        emit(plan, make(TaskKind::JoinNorm, Lane::Compute, GroupId{}, plan.step));
    waitFor(Wait::onTask(static_cast<TaskIndex>(plan.tasks.size() - 1)));
    m_scalars = emit(plan, make(TaskKind::SendScalars, Lane::CopyOut, GroupId{}, plan.step));
}

} // namespace mr
