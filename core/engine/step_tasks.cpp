// What the tasks of a plan mean in ops and copies: the second half of StepExecutor.

#include "core/engine/step_executor.h"

#include <algorithm>

namespace mr {

Status StepExecutor::enqueueWork(const Task& task, const StepInputs& inputs, Stream& lane)
{
    Ops& ops = m_device.ops();
    switch (task.kind) {
    case TaskKind::Forward:
        return enqueueForward(task, lane);
    case TaskKind::Backward:
        return enqueueBackward(task, inputs, lane);
    case TaskKind::FinishGradient:
        return finishGradient(task, lane);
    case TaskKind::NormPart: {
        const GroupMemory& group = m_memory.group(task.group);
        std::int64_t first = 0;
        for (std::int32_t g = 0; g < task.group.value; ++g)
            first += normBlockCount(m_memory.group(GroupId{g}).elements);
        return ops.normBlocks(
            {vectorView(group.gradient, m_memory.gradientType(), group.elements),
                m_memory.scalars.normBlocks.rows(first, normBlockCount(group.elements))},
            lane);
    }
    case TaskKind::JoinNorm:
        return ops.normJoin(
            {m_memory.scalars.normBlocks, m_memory.scalars.scalars, inputs.clipNorm}, lane);
    case TaskKind::UpdateOnDevice:
        return updateOnDevice(task, inputs, lane);
    case TaskKind::FetchWeights:
        return fetchWeights(task, lane);
    case TaskKind::FetchBatch:
    case TaskKind::SendGradient:
    case TaskKind::SendScalars:
        return enqueueCopy(task, lane);
    default:
        return refuse(task);
    }
}

LayerContext StepExecutor::contextOf(const Task& task, Stream& lane) const
{
    const auto buffer = static_cast<std::size_t>(task.micro.value) % m_memory.batches.size();
    return {&m_device.ops(), &lane, &m_config, m_memory.batches[buffer], m_memory.rope};
}

Status StepExecutor::enqueueForward(const Task& task, Stream& lane)
{
    const LayerContext context = contextOf(task, lane);
    const std::int64_t slot = task.micro.value % m_memory.slotCount();
    const std::int64_t layer = task.group.value;
    if (layer == 0)
        return m_device.ops().embed(
            {context.batch.ids, m_memory.embedding, m_memory.boundary(slot, 0)}, lane);
    const TensorView x = m_memory.boundary(slot, layer - 1);
    if (layer + 1 == m_memory.groupCount())
        return forwardHead(context, m_memory.headWeights, x, m_memory.head, m_memory.scalars.losses,
            task.micro.value);
    return forwardBlock(context, m_memory.group(task.group).weightViews, x,
        m_memory.boundary(slot, layer), m_memory.activations(slot, layer - 1), m_memory.scratch);
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
            {context.batch.ids, context.batch.order, grad, m_memory.embeddingGradient, accumulate},
            lane);
    const GroupMemory& memory = m_memory.group(task.group);
    const TensorView x = m_memory.boundary(slot, task.group.value - 1);
    const BlockActivations& kept = m_memory.activations(slot, task.group.value - 1);
    if (m_memory.recomputes())
        MR_TRY(recomputeBlock(context, memory.weightViews, x, kept, m_memory.scratch));
    return backwardBlock(context, memory.weightViews, x, kept, m_memory.scratch,
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

Status StepExecutor::finishGradient(const Task& task, Stream& lane)
{
    const GroupMemory& group = m_memory.group(task.group);
    const TensorView sum = vectorView(group.accumulator, DType::F32, group.elements);
    const TensorView out = vectorView(group.gradient, m_memory.gradientType(), group.elements);
    const TensorView& second = m_memory.secondAccumulator;
    if (task.group.value != 0 || !second.data)
        return m_device.ops().finishGradient({sum, {}, out}, lane);
    // The tied embedding is the whole of group 0 but for padding, which has no second gradient.
    const std::int64_t shared = second.count();
    MR_TRY(m_device.ops().finishGradient(
        {sum.rows(0, shared), vectorView(second.data, DType::F32, shared), out.rows(0, shared)},
        lane));
    const std::int64_t rest = group.elements - shared;
    if (rest == 0)
        return {};
    return m_device.ops().finishGradient(
        {sum.rows(shared, rest), {}, out.rows(shared, rest)}, lane);
}

Status StepExecutor::enqueueCopy(const Task& task, Stream& lane)
{
    if (task.kind == TaskKind::FetchBatch) {
        const auto micro = static_cast<std::size_t>(task.micro.value);
        std::byte* to = m_memory.batches[micro % m_memory.batches.size()].ids.data;
        m_h2dBytes += static_cast<std::int64_t>(m_memory.batchBytes);
        return lane.copy(to, {m_memory.hostBatches[micro].ids.data, m_memory.batchBytes});
    }
    if (task.kind == TaskKind::SendScalars) {
        m_d2hBytes += static_cast<std::int64_t>(m_memory.scalars.sentBytes);
        return lane.copy(m_memory.hostScalars.losses.data,
            {m_memory.scalars.losses.data, m_memory.scalars.sentBytes});
    }
    const GroupMemory& group = m_memory.group(task.group);
    const std::size_t each = sizeOf(m_memory.gradientType());
    const std::size_t offset = static_cast<std::size_t>(task.firstElement) * each;
    const std::size_t bytes = static_cast<std::size_t>(task.elementCount) * each;
    m_d2hBytes += static_cast<std::int64_t>(bytes);
    return lane.copy(group.hostGradient + offset, {group.gradient + offset, bytes});
}

Status StepExecutor::fetchWeights(const Task& task, Stream& lane)
{
    const GroupMemory& group = m_memory.group(task.group);
    const auto first = static_cast<std::size_t>(task.firstElement);
    const auto count = static_cast<std::size_t>(task.elementCount);
    const std::byte* high = group.state[static_cast<std::size_t>(StatePart::High)] + 2 * first;
    m_h2dBytes += static_cast<std::int64_t>(2 * count);
    if (m_memory.compute() == DType::BF16)
        return lane.copy(group.weights + 2 * first, {high, 2 * count});
    // Both planes cross and are joined here. They land in the accumulator, whose gradient has
    // been sent: the next writer of it is a backward behind the forward that reads these weights.
    const std::byte* low = group.state[static_cast<std::size_t>(StatePart::Low)] + 2 * first;
    std::byte* landing = group.accumulator + 4 * first;
    m_h2dBytes += static_cast<std::int64_t>(2 * count);
    MR_TRY(lane.copy(landing, {high, 2 * count}));
    MR_TRY(lane.copy(landing + 2 * count, {low, 2 * count}));
    const auto n = static_cast<std::int64_t>(count);
    MR_TRY(m_device.ops().join(
        {vectorView(landing, DType::U16, n), vectorView(landing + 2 * count, DType::I16, n),
            vectorView(group.weights + 4 * first, DType::F32, n)},
        lane));
    return clearGaps(task.group, {task.firstElement, task.elementCount}, lane);
}

Status StepExecutor::updateOnDevice(const Task& task, const StepInputs& inputs, Stream& lane)
{
    const GroupMemory& group = m_memory.group(task.group);
    const auto part = [&](StatePart p, DType type, std::int64_t first, std::int64_t count) {
        std::byte* base = group.state[static_cast<std::size_t>(p)];
        return vectorView(base + static_cast<std::size_t>(first) * sizeOf(type), type, count);
    };
    const std::int64_t end = task.firstElement + task.elementCount;
    for (const DecayRun& run : m_decayRuns[static_cast<std::size_t>(task.group.value)]) {
        const std::int64_t first = std::max(run.first, task.firstElement);
        const std::int64_t count = std::min(run.first + run.count, end) - first;
        if (count <= 0)
            continue;
        const TensorView grad =
            vectorView(group.gradient, m_memory.gradientType(), group.elements).rows(first, count);
        MR_TRY(
            m_device.ops().adamw({part(StatePart::High, DType::U16, first, count),
                                     part(StatePart::Low, DType::I16, first, count),
                                     part(StatePart::FirstMoment, DType::F32, first, count),
                                     part(StatePart::SecondMoment, DType::F32, first, count), grad,
                                     m_memory.scalars.scalars, inputs.factors, run.decayed},
                lane));
    }
    if (m_memory.compute() == DType::BF16)
        return {};
    return m_device.ops().join(
        {part(StatePart::High, DType::U16, task.firstElement, task.elementCount),
            part(StatePart::Low, DType::I16, task.firstElement, task.elementCount),
            vectorView(group.weights, DType::F32, group.elements)
                .rows(task.firstElement, task.elementCount)},
        lane);
}

} // namespace mr
