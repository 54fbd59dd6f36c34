// What the tasks of a plan mean in ops and copies: the second half of StepExecutor.

#include "core/step/step_executor.h"

#include <algorithm>

namespace mr {

Status StepExecutor::enqueueWork(const Task& task, const StepInputs& inputs, Stream& lane)
{
    if (m_window && WindowTasks::handles(task))
        return m_window->enqueue(task, inputs, lane);
    switch (task.kind) {
    case TaskKind::Forward:
        return enqueueForward(task, lane);
    case TaskKind::Backward:
        return enqueueBackward(task, inputs, lane);
    case TaskKind::FinishGradient:
        return finishGradient(task, lane);
    case TaskKind::NormPart:
        return normPart(task, lane);
    case TaskKind::JoinNorm:
        return joinNorm(task, inputs, lane);
    case TaskKind::UpdateOnDevice:
        return updateOnDevice(task, inputs, lane);
    case TaskKind::FetchWeights:
        return fetchWeights(task, lane);
    case TaskKind::SendWeights:
        return sendWeights(task, lane);
    case TaskKind::FetchState:
    case TaskKind::StoreState:
        return moveState(task, lane);
    case TaskKind::FetchBatch:
    case TaskKind::SaveBoundary:
    case TaskKind::LoadBoundary:
    case TaskKind::SendGradient:
    case TaskKind::SendScalars:
        return enqueueCopy(task, lane);
    case TaskKind::SaveActivations:
    case TaskKind::LoadActivations:
        return moveActivations(task, lane);
    default:
        return refuse(task);
    }
}

float StepExecutor::embeddingScale() const noexcept
{
    return static_cast<float>(m_config.embeddingScale);
}

LayerContext StepExecutor::contextOf(const Task& task, Stream& lane) const
{
    const auto buffer = static_cast<std::size_t>(task.micro.value) % m_memory.batches.size();
    const BatchViews seen = batchOfBlock(m_config, task.group.value - 1, m_memory.batches[buffer]);
    return {&m_device.ops(), &lane, &m_config, seen,
        constantsOfBlock(m_config, task.group.value - 1, m_memory.constants)};
}

Status StepExecutor::enqueueForward(const Task& task, Stream& lane)
{
    const LayerContext context = contextOf(task, lane);
    const std::int64_t slot = task.micro.value % m_memory.slotCount();
    const std::int64_t layer = task.group.value;
    if (layer == 0)
        return m_device.ops().embed(
            {context.batch.ids, m_memory.embedding, m_memory.boundary(slot, 0), embeddingScale()},
            lane);
    const TensorView x = m_memory.boundary(slot, layer - 1);
    if (layer + 1 == m_memory.groupCount())
        return forwardHead(context, m_memory.headWeights, x, m_memory.head, m_memory.scalars.losses,
            task.micro.value);
    return forwardBlock(context, m_memory.weightsOf(task), x, m_memory.boundary(slot, layer),
        m_memory.activations(slot, layer - 1), m_memory.scratch);
}

Status StepExecutor::enqueueBackward(const Task& task, const StepInputs& inputs, Stream& lane)
{
    const LayerContext context = contextOf(task, lane);
    const auto group = static_cast<std::size_t>(task.group.value);
    const std::int64_t slot = task.micro.value % m_memory.slotCount();
    const TensorView grad = m_memory.streamGradient(slot);
    if (task.group.value + 1 == m_memory.groupCount())
        return backwardHeadTask(task, inputs, context);
    const bool accumulate = m_accumulated[group];
    m_accumulated[group] = true;
    if (group == 0)
        return m_device.ops().embedBackward(
            {context.batch.ids, context.batch.order, grad, m_memory.embeddingGradient, accumulate,
                embeddingScale(), m_config.padToken},
            lane);
    const GroupMemory& memory = m_memory.group(task.group);
    const TensorView x = m_memory.boundary(slot, task.group.value - 1);
    const BlockActivations& kept = m_memory.activations(slot, task.group.value - 1);
    if (m_memory.recomputes() && !m_memory.keepsActivations(slot, task.group.value))
        MR_TRY(recomputeBlock(context, m_memory.weightsOf(task), x, kept, m_memory.scratch));
    return backwardBlock(context, m_memory.weightsOf(task), x, kept, m_memory.scratch,
        {memory.gradientViews, grad, accumulate});
}

Status StepExecutor::backwardHeadTask(
    const Task& task, const StepInputs& inputs, const LayerContext& context)
{
    const std::size_t group = m_accumulated.size() - 2;
    const std::int64_t slot = task.micro.value % m_memory.slotCount();
    HeadBackward backward;
    backward.gradients = m_memory.headGradients;
    backward.losses = m_memory.scalars.losses;
    backward.micro = task.micro.value;
    backward.product = m_memory.headProduct;
    backward.gradX = m_memory.streamGradient(slot);
    backward.accumulate = m_accumulated[group];
    backward.accumulateMatrix = m_accumulated[group];
    backward.lossScale = inputs.lossScale;
    m_accumulated[group] = true;
    return backwardHead(context, m_memory.headWeights,
        m_memory.boundary(slot, task.group.value - 1), m_memory.head, backward);
}

// Calls fn(first, count) for the parts of a group whose finished gradients lie apart.
template <typename F>
Status StepExecutor::forParts(const GroupMemory& group, F&& fn)
{
    if (group.sentFirst > 0)
        MR_TRY(fn(std::int64_t{0}, group.sentFirst));
    return group.sentFirst < group.elements ? fn(group.sentFirst, group.elements - group.sentFirst)
                                            : Status();
}

Status StepExecutor::finishGradient(const Task& task, Stream& lane)
{
    const GroupMemory& group = m_memory.group(task.group);
    const TensorView sum = vectorView(group.accumulator, DType::F32, group.elements);
    // The tied embedding is the whole of group 0 but for padding, which has no second gradient.
    const TensorView& tied = m_memory.secondAccumulator;
    const std::int64_t shared = task.group.value == 0 && tied.data ? tied.count() : 0;
    const TensorView second = vectorView(tied.data, DType::F32, shared);
    return forParts(group, [&](std::int64_t first, std::int64_t count) -> Status {
        const std::int64_t both = std::clamp(shared - first, std::int64_t{0}, count);
        const DType type = m_memory.gradientType();
        if (both > 0)
            MR_TRY(m_device.ops().finishGradient({sum.rows(first, both), second.rows(first, both),
                                                     group.finished(type, first, both)},
                lane));
        if (both == count)
            return {};
        return m_device.ops().finishGradient({sum.rows(first + both, count - both), {},
                                                 group.finished(type, first + both, count - both)},
            lane);
    });
}

Status StepExecutor::normPart(const Task& task, Stream& lane)
{
    const GroupMemory& group = m_memory.group(task.group);
    // The parts are cut at a multiple of a block.
    return forParts(group, [&](std::int64_t first, std::int64_t count) {
        return m_device.ops().normBlocks({group.finished(m_memory.gradientType(), first, count),
                                             normBlocksOf(task.group, first, count)},
            lane);
    });
}

TensorView StepExecutor::normBlocksOf(GroupId group, std::int64_t first, std::int64_t count) const
{
    std::int64_t block = normBlockCount(first);
    for (GroupId before{0}; before < group; ++before.value)
        block += normBlockCount(m_memory.group(before).elements);
    return m_memory.scalars.normBlocks.rows(block, normBlockCount(count));
}

// Of the step, or of one group alone.
Status StepExecutor::joinNorm(const Task& task, const StepInputs& inputs, Stream& lane)
{
    const ScalarViews& scalars = m_memory.scalars;
    if (task.group.value < 0)
        return m_device.ops().normJoin(
            {scalars.normBlocks, scalars.scalars, inputs.clipNorm}, lane);
    return m_device.ops().normJoin(
        {normBlocksOf(task.group, 0, m_memory.group(task.group).elements),
            scalars.scalarsOf(task.group), inputs.clipNorm},
        lane);
}

Status StepExecutor::sendScalars(const Task& task, Stream& lane)
{
    const bool ofGroup = task.group.value >= 0;
    const ScalarViews& here = m_memory.scalars;
    const ScalarViews& there = m_memory.hostScalars;
    const TensorView from = ofGroup ? here.scalarsOf(task.group) : here.losses;
    const TensorView to = ofGroup ? there.scalarsOf(task.group) : there.losses;
    const std::size_t bytes = ofGroup ? kGroupScalarBytes : here.sentBytes;
    m_d2hBytes += static_cast<std::int64_t>(bytes);
    return lane.copy(to.data, {from.data, bytes});
}

Status StepExecutor::enqueueCopy(const Task& task, Stream& lane)
{
    if (task.kind == TaskKind::FetchBatch) {
        const auto micro = static_cast<std::size_t>(task.micro.value);
        std::byte* to = m_memory.batches[micro % m_memory.batches.size()].ids.data;
        m_h2dBytes += static_cast<std::int64_t>(m_memory.batchBytes);
        return lane.copy(to, {m_memory.hostBatches[micro].ids.data, m_memory.batchBytes});
    }
    if (task.kind == TaskKind::SendScalars)
        return sendScalars(task, lane);
    if (task.kind != TaskKind::SendGradient)
        return moveBoundary(task, lane);
    const GroupMemory& group = m_memory.group(task.group);
    const TensorView from =
        group.finished(m_memory.gradientType(), task.firstElement, task.elementCount);
    m_d2hBytes += static_cast<std::int64_t>(from.bytes());
    return lane.copy(hostGradient(task, task.firstElement), {from.data, from.bytes()});
}

Status StepExecutor::moveBoundary(const Task& task, Stream& lane)
{
    const std::int64_t slot = task.micro.value % m_memory.slotCount();
    const TensorView here = m_memory.boundary(slot, task.group.value);
    std::byte* home = task.stage >= 0 ? m_memory.diskStage(task.stage).data()
                                      : m_memory.hostBoundary(slot, task.group.value).data;
    const bool load = task.kind == TaskKind::LoadBoundary;
    (load ? m_h2dBytes : m_d2hBytes) += static_cast<std::int64_t>(here.bytes());
    return load ? lane.copy(here.data, {home, here.bytes()})
                : lane.copy(home, {here.data, here.bytes()});
}

Status StepExecutor::moveActivations(const Task& task, Stream& lane)
{
    const std::int64_t slot = task.micro.value % m_memory.slotCount();
    const std::span<std::byte> here = m_memory.activationBytes(slot, task.group.value - 1);
    std::byte* home = m_memory.hostActivations(slot, task.group.value);
    const bool load = task.kind == TaskKind::LoadActivations;
    (load ? m_h2dBytes : m_d2hBytes) += static_cast<std::int64_t>(here.size());
    return load ? lane.copy(here.data(), {home, here.size()}) : lane.copy(home, here);
}

Status StepExecutor::fetchWeights(const Task& task, Stream& lane)
{
    std::byte* weights = m_memory.weightBytes(task);
    const auto first = static_cast<std::size_t>(task.firstElement);
    const auto count = static_cast<std::size_t>(task.elementCount);
    const std::byte* high =
        m_memory.hostState(task.group, StatePart::High, task.firstElement, task.stage);
    m_h2dBytes += static_cast<std::int64_t>(2 * count);
    if (m_memory.compute() == DType::BF16)
        return lane.copy(weights + 2 * first, {high, 2 * count});
    // Both planes cross and are joined here. This lane runs in order, so one landing serves all.
    const std::byte* low =
        m_memory.hostState(task.group, StatePart::Low, task.firstElement, task.stage);
    std::byte* landing = m_memory.uploadLanding;
    m_h2dBytes += static_cast<std::int64_t>(2 * count);
    MR_TRY(lane.copy(landing, {high, 2 * count}));
    MR_TRY(lane.copy(landing + 2 * count, {low, 2 * count}));
    const auto n = static_cast<std::int64_t>(count);
    return m_device.ops().join(
        {vectorView(landing, DType::U16, n), vectorView(landing + 2 * count, DType::I16, n),
            vectorView(weights + 4 * first, DType::F32, n)},
        lane);
}

// To the slot of their update. In F32 the host has two planes of them.
Status StepExecutor::sendWeights(const Task& task, Stream& lane)
{
    if (m_memory.compute() != DType::BF16)
        return refuse(task);
    const std::size_t bytes = 2 * static_cast<std::size_t>(task.elementCount);
    const std::byte* from =
        m_memory.weightBytes(task) + 2 * static_cast<std::size_t>(task.firstElement);
    m_d2hBytes += static_cast<std::int64_t>(bytes);
    return lane.copy(m_memory.hostState(task.group, StatePart::High, task.firstElement, task.stage),
        {from, bytes});
}

} // namespace mr
