#include "core/plan/layer_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace mr {

void LayerEmitter::begin(const StepLayout& layout)
{
    StepPlan& plan = m_writer.plan();
    plan.weightSlots = layout.weightSlots;
    m_slots.begin(layout.weightSlots,
        m_writer.isTraining() ? std::span(m_writer.in().heldSlots) : std::span<const HeldSlot>());
    m_activations.begin(layout);
    m_boundaries.begin(layout);
    m_fetched = 0;
    m_backwardLeft.assign(static_cast<std::size_t>(m_writer.terms().layers()), plan.microBatches);
    for (int m = 0; m < std::min(plan.batchBuffers, plan.microBatches); ++m)
        fetchBatch();
}

void LayerEmitter::beginSecondPass()
{
    StepPlan& plan = m_writer.plan();
    plan.secondPass = static_cast<TaskIndex>(plan.tasks.size());
    std::ranges::fill(m_backwardLeft, plan.microBatches);
}

void LayerEmitter::keepSlots(Carry& out) const
{
    out.heldSlots.clear();
    const auto isKept = [this](const WeightSlot& slot) {
        return slot.group.value >= 0 && m_writer.terms().fetchesFrozen(slot.group);
    };
    if (std::ranges::any_of(m_slots.all(), isKept))
        for (const WeightSlot& slot : m_slots.all())
            out.heldSlots.push_back({isKept(slot) ? slot.group : GroupId{-1}});
}

void LayerEmitter::fetchBatch()
{
    Task task = m_writer.make(TaskKind::FetchBatch, Lane::CopyIn, GroupId{});
    task.micro = MicroBatch{m_fetched++};
    m_writer.emit(task);
}

bool LayerEmitter::hasFinished(const WorkItem& item) const
{
    return item.pass == WorkItem::Pass::Backward &&
           m_backwardLeft[static_cast<std::size_t>(item.layer.value)] == 0;
}

Status LayerEmitter::emit(const WorkItem& item)
{
    const bool backward = item.pass == WorkItem::Pass::Backward;
    if (m_writer.isTraining() && !backward && isHead(item) && !m_writer.plan().probes)
        return {}; // the head's backward computes the losses too
    MR_TRY(needBatch(item));
    pass(item);
    fetchNextBatch(item);
    if (backward)
        --backwardLeft(item);
    return {};
}

Status LayerEmitter::needBatch(const WorkItem& item) const
{
    if (item.micro.value < m_fetched)
        return {};
    return Status::error(ErrorKind::Internal,
        fmt::format(
            "plan: the order of work reaches micro-batch {} before its batch buffer is free",
            item.micro.value));
}

// Behind the last reader of a batch.
void LayerEmitter::fetchNextBatch(const WorkItem& item)
{
    const bool lastReader = m_writer.isTraining()
                                ? item.pass == WorkItem::Pass::Backward &&
                                      item.layer.value == m_writer.terms().shape.firstTrained()
                                : isHead(item);
    if (lastReader && m_fetched < m_writer.plan().microBatches)
        fetchBatch();
}

Status LayerEmitter::emitTiles(std::span<const WorkItem> visit)
{
    const bool training = m_writer.isTraining();
    const int tiles = m_writer.terms().tiles.count();
    if (training && visit.front().pass == WorkItem::Pass::Forward)
        return {}; // their backward begins with it
    for (const WorkItem& item : visit) {
        MR_TRY(needBatch(item));
        if (m_writer.plan().savesBoundaries)
            m_boundaries.bring(item);
    }
    for (int tile = 0; tile < tiles; ++tile)
        passTile(visit, TaskKind::Forward, tile);
    for (int tile = tiles - 1; training && tile >= 0; --tile)
        passTile(visit, TaskKind::Backward, tile);
    for (const WorkItem& item : visit) {
        fetchNextBatch(item);
        if (training)
            --backwardLeft(item);
    }
    return {};
}

void LayerEmitter::passTile(std::span<const WorkItem> visit, TaskKind kind, int tile)
{
    const GroupId group{visit.front().layer.value};
    const VocabularyTile range = m_writer.terms().tiles.at(tile);
    Task task = m_writer.make(
        kind, Lane::Compute, group, m_writer.plan().step - (m_writer.isTraining() ? 1 : 0));
    task.firstElement = range.first;
    task.elementCount = range.count;
    task.slot = m_stream.bringRange(task);
    for (const WorkItem& item : visit) {
        task.micro = item.micro;
        m_slots.at(task.slot).lastUse = m_writer.emit(task).index();
    }
}

// To the place of the embedding's output.
void LayerEmitter::fetchRows(const WorkItem& item)
{
    Task task = m_writer.make(TaskKind::FetchRows, Lane::CopyIn, GroupId{item.layer.value},
        m_writer.plan().step - (m_writer.isTraining() ? 1 : 0));
    task.micro = item.micro;
    task.elementCount = 0;
    m_writer.waitForCarried(task.group);
    m_writer.emit(task);
}

// The first backward of a block overwrites its sum. In F32 the sum is sent; else a rounded copy is,
// or a packed one.
void LayerEmitter::waitForGradientPlace(const WorkItem& item)
{
    const StepPlan& plan = m_writer.plan();
    const bool isFirst =
        item.pass == WorkItem::Pass::Backward && backwardLeft(item) == plan.microBatches;
    if (isFirst && plan.gradients.finishedSlots == 0 && !m_writer.terms().byColumns)
        m_writer.waitFor(
            m_gradients.sendOfOccupant(GroupId{item.layer.value}, plan.gradients.sumSlots));
}

void LayerEmitter::pass(const WorkItem& item)
{
    const GroupId group{item.layer.value};
    const bool isTiled = m_writer.terms().isTiled(group);
    const bool takesSlot =
        (m_writer.terms().streamsGroup(group) && !isTiled) || m_writer.terms().fetchesFrozen(group);
    const bool savesBoundaries = m_writer.plan().savesBoundaries;
    const bool readsEmbedding = m_writer.terms().shape.tiedHead && isHead(item);
    Task task =
        m_writer.make(item.pass == WorkItem::Pass::Forward ? TaskKind::Forward : TaskKind::Backward,
            Lane::Compute, group, m_writer.plan().step - (m_writer.isTraining() ? 1 : 0));
    task.micro = item.micro;
    if (isTiled && item.pass == WorkItem::Pass::Forward)
        fetchRows(item);
    m_stream.open(group);
    if (takesSlot)
        task.slot = m_stream.bring(group, task.version);
    if (savesBoundaries)
        m_boundaries.bring(item);
    m_activations.bring(task);
    m_writer.waitFor(m_writer.group(group).upload);
    waitForGradientPlace(item);
    if (readsEmbedding)
        m_writer.waitFor(m_writer.group(GroupId{0}).upload);
    if (group.value == 0)
        m_writer.waitForCarried(GroupId{});
    const Wait done = m_writer.emit(task);
    m_writer.group(group).reader = done;
    if (readsEmbedding)
        m_writer.group(GroupId{0}).reader = done;
    if (takesSlot)
        m_slots.at(task.slot).lastUse = done.index();
    if (savesBoundaries)
        m_boundaries.leave(item);
    m_activations.leave(task);
}

} // namespace mr
