#include "core/step/pass_tasks.h"

#include <algorithm>
#include <utility>

namespace mr {

PassTasks::PassTasks(Device& device, const RunMemory& memory, const ModelConfig& config,
    ForwardProbes& probes, LinkBytes& traffic)
    : m_device(device)
    , m_memory(memory)
    , m_config(config)
    , m_probes(probes)
    , m_traffic(traffic)
    , m_accumulated(static_cast<std::size_t>(memory.groupCount()))
{
}

void PassTasks::beginStep(const StepPlan& plan, const StepInputs& inputs)
{
    m_step = plan.step;
    m_seed = inputs.seed;
    m_lowestBackward = m_memory.groupCount();
    for (const Task& task : plan.tasks)
        if (task.kind == TaskKind::Backward)
            m_lowestBackward = std::min<std::int64_t>(m_lowestBackward, task.group.value);
    m_trains = m_lowestBackward < m_memory.groupCount();
    beginSums();
    m_sumIsLeft = false;
}

void PassTasks::beginSums()
{
    std::fill(m_accumulated.begin(), m_accumulated.end(), false);
    m_firstOfHead = MicroBatch{-1};
}

Status PassTasks::enqueue(
    const StepPlan& plan, TaskIndex index, const StepInputs& inputs, Stream& stream)
{
    const Task& task = plan.tasks[index];
    switch (task.kind) {
    case TaskKind::Forward:
        return plan.probes ? forwardBothWays(task, inputs, stream) : forward(plan, index, stream);
    case TaskKind::Backward:
        return backward(task, inputs, stream);
    case TaskKind::FetchBatch:
        return fetchBatch(task, stream);
    case TaskKind::FetchWeights:
        return fetchWeights(task, stream);
    case TaskKind::FetchFrozen:
        return fetchFrozen(task, stream);
    case TaskKind::FetchRows:
        return fetchRows(task, stream);
    case TaskKind::SendWeights:
        return sendWeights(task, stream);
    case TaskKind::SaveBoundary:
    case TaskKind::LoadBoundary:
        return moveBoundary(task, stream);
    case TaskKind::SaveActivations:
    case TaskKind::LoadActivations:
        return moveActivations(task, stream);
    case TaskKind::SendScalars:
        return sendScalars(task, stream);
    default:
        return refuse(task);
    }
}

float PassTasks::embeddingScale() const noexcept
{
    return static_cast<float>(m_config.embeddingScale);
}

std::int64_t PassTasks::slotOf(const Task& task) const noexcept
{
    return task.micro.value % m_memory.slotCount();
}

LayerContext PassTasks::contextOf(const Task& task, Stream& stream) const
{
    const auto buffer = static_cast<std::size_t>(task.micro.value) % m_memory.batches.size();
    const std::int64_t block = task.group.value - 1;
    LayerContext context{&m_device.ops(), &stream, &m_config,
        batchOfBlock(m_config, block, m_memory.batches[buffer]), m_config.findKind(block),
        ropeOfBlock(m_config, block, m_memory.constants), 0, &m_memory.apart, m_trains,
        m_memory.adapterOf(task.group), dropoutOf(task)};
    context.block = block;
    context.shared = &m_memory.shared(slotOf(task));
    context.ones = m_memory.constants.ones;
    return context;
}

AdapterDropout PassTasks::dropoutOf(const Task& task) const
{
    if (!m_trains)
        return {};
    return {m_memory.dropout(), m_seed, m_step, task.micro.value, task.group.value};
}

// Does the activation wait for backward in codes? It does where it is the input of a block that
// backward makes again.
bool PassTasks::encodes(std::int64_t boundary) const noexcept
{
    return m_memory.boundaries().hasCodes() && boundary + 1 >= m_lowestBackward &&
           boundary + 2 < m_memory.groupCount();
}

Status PassTasks::encode(std::int64_t slot, std::int64_t boundary, Stream& stream)
{
    const BoundaryMemory& all = m_memory.boundaries();
    return m_device.ops().encodeInputs(
        {all.of(slot, boundary), all.codes(slot, boundary), all.scales(slot, boundary)}, stream);
}

Status PassTasks::decode(std::int64_t slot, std::int64_t boundary, Stream& stream)
{
    const BoundaryMemory& all = m_memory.boundaries();
    return m_device.ops().decodeInputs(
        {all.codes(slot, boundary), all.scales(slot, boundary), all.of(slot, boundary)}, stream);
}

// May the block leave its output in two parts, for the next layer's norm to add? Yes if the next
// task on Compute is the pass of that layer with the same micro-batch, and if no other lane copies
// the output or the activations, of which one part is, and no codes are made of it. Later passes
// find the sum.
bool PassTasks::leavesSum(const StepPlan& plan, TaskIndex index) const
{
    const Task& task = plan.tasks[index];
    const bool isScaled =
        task.group.value > 0 && m_config.outputScaleOf(task.group.value - 1) != 1.0F;
    if (plan.savesBoundaries || isScaled || encodes(task.group.value) ||
        m_memory.activations().isKept(slotOf(task), task.group.value))
        return false;
    const auto onCompute = [](const Task& other) { return other.lane == Lane::Compute; };
    const auto next = std::find_if(plan.tasks.begin() + index + 1, plan.tasks.end(), onCompute);
    return next != plan.tasks.end() &&
           (next->kind == TaskKind::Forward || next->kind == TaskKind::Backward) &&
           next->group.value == task.group.value + 1 && next->micro == task.micro;
}

LayerInput PassTasks::inputOf(const Task& task)
{
    const std::int64_t slot = slotOf(task);
    const std::int64_t below = task.group.value - 1;
    LayerInput input{m_memory.boundaries().of(slot, below), {}, {}};
    if (std::exchange(m_sumIsLeft, false)) {
        input.stream = streamOf(m_memory.activations().of(slot, below - 1));
        input.branch = m_memory.scratchOf(below - 1).branch;
    }
    return input;
}

// The next layer reads the output as it is; what waits for backward is made behind it.
Status PassTasks::forward(const StepPlan& plan, TaskIndex index, Stream& stream)
{
    const Task& task = plan.tasks[index];
    MR_TRY(forwardLayer(plan, index, stream));
    return encodes(task.group.value) ? encode(slotOf(task), task.group.value, stream) : Status();
}

Status PassTasks::forwardLayer(const StepPlan& plan, TaskIndex index, Stream& stream)
{
    const Task& task = plan.tasks[index];
    const LayerContext context = contextOf(task, stream);
    const std::int64_t slot = slotOf(task);
    const std::int64_t layer = task.group.value;
    if (layer == 0 && task.micro.value == 0)
        MR_TRY(m_memory.tokenRows.place(stream));
    const bool isTiled = m_memory.vocabulary().any();
    if (layer == 0 && isTiled)
        return {}; // its rows have come (fetchRows)
    if (layer == 0)
        return embed(
            context, m_memory.embedding, m_memory.inputWeights, m_memory.boundaries().of(slot, 0));
    if (layer + 1 == m_memory.groupCount() && isTiled)
        return forwardTile(task, context);
    const LayerInput input = inputOf(task);
    if (layer + 1 == m_memory.groupCount())
        return forwardHead(context, m_memory.headWeights, input, m_memory.head,
            m_memory.scalars.losses, task.micro.value);
    m_sumIsLeft = leavesSum(plan, index);
    const TensorView out = m_sumIsLeft ? TensorView{} : m_memory.boundaries().of(slot, layer);
    return forwardBlock(context, m_memory.weightsOf(task), input, out,
        m_memory.activations().of(slot, layer - 1), m_memory.scratchOf(layer - 1));
}

Status PassTasks::backward(const Task& task, const StepInputs& inputs, Stream& stream)
{
    const LayerContext context = contextOf(task, stream);
    const auto group = static_cast<std::size_t>(task.group.value);
    const std::int64_t slot = slotOf(task);
    const TensorView grad = m_memory.boundaries().gradient(slot);
    const bool accumulate = m_accumulated[group];
    m_accumulated[group] = true;
    if (task.group.value + 1 == m_memory.groupCount())
        return backwardHeadTask(task, inputs.lossScale, context);
    if (group == 0)
        return backwardEmbedding(context, grad, accumulate);
    const GroupMemory& memory = m_memory.group(task.group);
    const TensorView x = m_memory.boundaries().of(slot, task.group.value - 1);
    const BlockActivations kept = m_memory.activations().of(slot, task.group.value - 1);
    const BlockScratch& scratch = m_memory.scratchOf(task.group.value - 1);
    if (encodes(task.group.value - 1))
        MR_TRY(decode(slot, task.group.value - 1, stream));
    if (!accumulate)
        for (const TensorView& gap : memory.sharedGaps)
            MR_TRY(m_device.ops().fill({gap, 0.0F}, stream));
    const Recompute how = m_memory.recompute();
    if (how == Recompute::Block && !m_memory.activations().isKept(slot, task.group.value))
        MR_TRY(recomputeBlock(context, m_memory.weightsOf(task), x, kept, scratch));
    else if (how == Recompute::Cheap)
        MR_TRY(remakeActivations(context, m_memory.weightsOf(task), x, kept, scratch));
    return backwardBlock(context, m_memory.weightsOf(task), x, kept, scratch,
        {memory.gradientViews, grad, accumulate, memory.adapterGradients});
}

Status PassTasks::embed(const LayerContext& context, const TensorView& matrix,
    const InputTensors& inputs, const TensorView& out)
{
    MR_TRY(
        m_device.ops().embed({context.batch.ids, matrix, out, embeddingScale()}, *context.stream));
    if (m_config.layerInput == 0)
        return {};
    return makeInputs(context, inputs, out, m_memory.inputScratch);
}

// Inputs of blocks are made of the embedding's rows, too.
Status PassTasks::backwardInputs(
    const LayerContext& context, const TensorView& grad, bool accumulate)
{
    if (m_config.layerInput == 0)
        return {};
    const InputScratch& scratch = m_memory.inputScratch;
    MR_TRY(m_device.ops().embed(
        {context.batch.ids, m_memory.embedding, scratch.x, embeddingScale()}, *context.stream));
    return makeInputsBack(
        context, m_memory.inputWeights, m_memory.inputGradients, grad, scratch, accumulate);
}

Status PassTasks::backwardEmbedding(
    const LayerContext& context, const TensorView& grad, bool accumulate)
{
    const TokenRows& rows = m_memory.tokenRows;
    const BatchViews& batch = context.batch;
    Stream& stream = *context.stream;
    MR_TRY(backwardInputs(context, grad, accumulate));
    if (rows.any())
        return m_device.ops().embedBackward(
            {batch.rowIds, batch.rowOrder, grad, rows.gradient(), accumulate, embeddingScale()},
            stream);
    return m_device.ops().embedBackward({batch.ids, batch.order, grad, m_memory.embeddingGradient,
                                            accumulate, embeddingScale(), m_config.padToken},
        stream);
}

Status PassTasks::backwardHeadTask(const Task& task, float lossScale, const LayerContext& context)
{
    const std::int64_t slot = slotOf(task);
    if (m_firstOfHead.value < 0)
        m_firstOfHead = task.micro;
    HeadBackward backward;
    backward.gradients = m_memory.headGradients;
    if (m_memory.tokenRows.any() && m_config.tiedEmbedding)
        backward.rows = {m_memory.secondAccumulator, m_memory.tokenRows.runs()};
    backward.losses = m_memory.scalars.losses;
    backward.micro = task.micro.value;
    backward.product = m_memory.headProduct;
    backward.gradX = m_memory.boundaries().gradient(slot);
    backward.accumulate = backward.accumulateMatrix = m_firstOfHead != task.micro;
    backward.lossScale = lossScale;
    if (m_memory.vocabulary().any())
        return backwardTile(task, context, backward);
    return backwardHead(context, m_memory.headWeights, inputOf(task), m_memory.head, backward);
}

Status PassTasks::sendScalars(const Task& task, Stream& stream)
{
    const bool ofGroup = task.group.value >= 0;
    const ScalarViews& here = m_memory.scalars;
    const ScalarViews& there = m_memory.hostScalars;
    const TensorView from = ofGroup ? here.scalarsOf(task.group) : here.losses;
    const TensorView to = ofGroup ? there.scalarsOf(task.group) : there.losses;
    const std::size_t bytes = ofGroup ? kGroupScalarBytes : here.sentBytes;
    m_traffic.toHost += static_cast<std::int64_t>(bytes);
    return stream.copy(to.data, {from.data, bytes});
}

Status PassTasks::fetchBatch(const Task& task, Stream& stream)
{
    const auto micro = static_cast<std::size_t>(task.micro.value);
    std::byte* to = m_memory.batches[micro % m_memory.batches.size()].ids.data;
    m_traffic.toDevice += static_cast<std::int64_t>(m_memory.batchBytes);
    return stream.copy(to, {m_memory.hostBatches[micro].ids.data, m_memory.batchBytes});
}

Status PassTasks::moveBoundary(const Task& task, Stream& stream)
{
    const std::int64_t slot = slotOf(task);
    const std::span<std::byte> here = m_memory.boundaries().kept(slot, task.group.value);
    std::byte* home = task.stage >= 0 ? m_memory.disk().of(task.stage).data()
                                      : m_memory.boundaries().onHost(slot, task.group.value);
    const bool load = task.kind == TaskKind::LoadBoundary;
    (load ? m_traffic.toDevice : m_traffic.toHost) += static_cast<std::int64_t>(here.size());
    return load ? stream.copy(here.data(), {home, here.size()}) : stream.copy(home, here);
}

Status PassTasks::moveActivations(const Task& task, Stream& stream)
{
    const std::int64_t slot = slotOf(task);
    const std::span<std::byte> here = m_memory.activations().bytes(slot, task.group.value - 1);
    std::byte* home = m_memory.activations().onHost(slot, task.group.value);
    const bool load = task.kind == TaskKind::LoadActivations;
    (load ? m_traffic.toDevice : m_traffic.toHost) += static_cast<std::int64_t>(here.size());
    return load ? stream.copy(here.data(), {home, here.size()}) : stream.copy(home, here);
}

Status PassTasks::fetchWeights(const Task& task, Stream& stream)
{
    std::byte* weights = m_memory.weightBytes(task);
    const auto first = static_cast<std::size_t>(task.firstElement - m_memory.weightsFirst(task));
    const auto count = static_cast<std::size_t>(task.elementCount);
    const std::byte* high =
        m_memory.hostState(task.group, StatePart::High, task.firstElement, task.stage);
    m_traffic.toDevice += static_cast<std::int64_t>(2 * count);
    if (m_memory.compute() == DType::BF16)
        return stream.copy(weights + 2 * first, {high, 2 * count});
    // Both planes cross and are joined here. This lane runs in order, so one landing serves all.
    const std::byte* low =
        m_memory.hostState(task.group, StatePart::Low, task.firstElement, task.stage);
    std::byte* landing = m_memory.uploadLanding;
    m_traffic.toDevice += static_cast<std::int64_t>(2 * count);
    MR_TRY(stream.copy(landing, {high, 2 * count}));
    MR_TRY(stream.copy(landing + 2 * count, {low, 2 * count}));
    const auto n = static_cast<std::int64_t>(count);
    return m_device.ops().join(
        {vectorView(landing, DType::U16, n), vectorView(landing + 2 * count, DType::I16, n),
            vectorView(weights + 4 * first, DType::F32, n)},
        stream);
}

// Packed weights are expanded once the last of a group has come. This lane runs in order, so one
// landing serves all.
Status PassTasks::fetchFrozen(const Task& task, Stream& stream)
{
    const GroupMemory& group = m_memory.group(task.group);
    if (!group.isPacked())
        return copyFrozen(task, m_memory.weightBytes(task), stream);
    if (group.frozen)
        return expand(task, group.frozen, stream);
    MR_TRY(copyFrozen(task, m_memory.packedLanding, stream));
    const bool isLast = task.firstElement + task.elementCount == group.frozenElements;
    return isLast ? expand(task, m_memory.packedLanding, stream) : Status();
}

// From the host, or from a stage. `to`: where the group begins, as it is held.
Status PassTasks::copyFrozen(const Task& task, std::byte* to, Stream& stream)
{
    const GroupMemory& group = m_memory.group(task.group);
    const auto before = [&](std::int64_t element) {
        return frozenBytesBefore(
            element, group.frozenElements, group.packed.bytes, sizeOf(m_memory.compute()));
    };
    const std::size_t first = before(task.firstElement);
    const std::size_t bytes = before(task.firstElement + task.elementCount) - first;
    m_traffic.toDevice += static_cast<std::int64_t>(bytes);
    if (task.stage < 0)
        return stream.copy(to + first, group.frozenOnHost.subspan(first, bytes));
    const std::span<std::byte> stage = m_memory.disk().of(task.stage);
    const std::int32_t tile = m_memory.disk().cuts().frozenTileOf(task.group, task.firstElement);
    for (const FrozenPiece& piece : m_memory.frozenPieces.of(tile))
        MR_TRY(stream.copy(to + piece.at, stage.subspan(piece.stageAt + piece.lead, piece.bytes)));
    return {};
}

Status PassTasks::expand(const Task& task, std::byte* from, Stream& stream)
{
    const DType compute = m_memory.compute();
    std::byte* slot = m_memory.weightBytes(task);
    for (const PackedTensor& tensor : m_memory.group(task.group).packed.tensors) {
        std::byte* to = slot + sizeOf(compute) * static_cast<std::size_t>(tensor.first);
        const TensorView out = vectorView(to, compute, tensor.elements);
        MR_TRY(tensor.isPacked
                   ? m_device.ops().dequantizeNf4(nf4Args(from + tensor.at, out), stream)
                   : stream.copy(to, {from + tensor.at, out.bytes()}));
    }
    return {};
}

// To the slot of their update. In F32 the host has two planes of them.
Status PassTasks::sendWeights(const Task& task, Stream& stream)
{
    if (m_memory.compute() != DType::BF16)
        return refuse(task);
    const std::size_t bytes = 2 * static_cast<std::size_t>(task.elementCount);
    const std::byte* from =
        m_memory.weightBytes(task) + 2 * static_cast<std::size_t>(task.firstElement);
    m_traffic.toHost += static_cast<std::int64_t>(bytes);
    return stream.copy(
        m_memory.hostState(task.group, StatePart::High, task.firstElement, task.stage),
        {from, bytes});
}

} // namespace mr
