#include "core/step/update_tasks.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mr {
namespace {

static_assert(kScaledElements == static_cast<std::int64_t>(kCompactGroup));
static_assert(kSlotAlign % kScaledElements == 0, "runs of weight decay begin where a group does");

// Calls fn(first, count) for the parts of a group: their finished gradients lie apart.
template <typename F>
Status forParts(const GroupMemory& group, F&& fn)
{
    if (group.sentFirst > 0)
        MR_TRY(fn(std::int64_t{0}, group.sentFirst));
    return group.sentFirst < group.elements ? fn(group.sentFirst, group.elements - group.sentFirst)
                                            : Status();
}

} // namespace

UpdateTasks::UpdateTasks(Device& device, const RunMemory& memory, const ParamTable& table,
    ForwardProbes& probes, LinkBytes& traffic)
    : m_device(device)
    , m_memory(memory)
    , m_probes(probes)
    , m_traffic(traffic)
    , m_light(device, memory, table)
    , m_decayRuns(findDecayRuns(table, false))
    , m_rateRuns(findDecayRuns(table, true))
{
}

UpdateTasks::DecayRuns UpdateTasks::findDecayRuns(const ParamTable& table, bool tellsBApart)
{
    DecayRuns all;
    for (const ParamGroup& group : table.groups) {
        std::vector<DecayRun> runs;
        for (std::size_t i = 0; i < group.paramSlots.size(); ++i) {
            const ParamSlot& slot = group.paramSlots[i];
            const bool last = i + 1 == group.paramSlots.size();
            const std::int64_t end = last ? group.elements : group.paramSlots[i + 1].first;
            const std::int64_t first = runs.empty() ? 0 : runs.back().first + runs.back().count;
            // Magnitudes learn as fast as B, as in PEFT.
            const bool isB = tellsBApart && (slot.kind == SlotKind::AdapterB ||
                                                slot.kind == SlotKind::AdapterMagnitude);
            if (!runs.empty() && runs.back().decayed == slot.decayed && runs.back().isB == isB)
                runs.back().count = end - runs.back().first;
            else
                runs.push_back({first, end - first, slot.decayed, isB});
        }
        all.push_back(std::move(runs));
    }
    return all;
}

// The part of the run that the task updates; its count may be 0 or less.
UpdateTasks::DecayRun UpdateTasks::inTask(const DecayRun& run, const Task& task) noexcept
{
    const std::int64_t first = std::max(run.first, task.firstElement);
    const std::int64_t end = std::min(run.first + run.count, task.firstElement + task.elementCount);
    return {first, end - first, run.decayed, run.isB};
}

bool UpdateTasks::handles(TaskKind kind) noexcept
{
    switch (kind) {
    case TaskKind::FinishGradient:
    case TaskKind::SendGradient:
    case TaskKind::NormPart:
    case TaskKind::JoinNorm:
    case TaskKind::FetchState:
    case TaskKind::StoreState:
    case TaskKind::PrepareUpdate:
    case TaskKind::UpdateOnDevice:
        return true;
    default:
        return false;
    }
}

void UpdateTasks::beginStep(const StepPlan& plan) noexcept
{
    m_step = plan.step;
    m_normByGroup = plan.readsOwnNorm();
    m_isProbed = plan.probes;
}

Status UpdateTasks::enqueue(const Task& task, const StepInputs& inputs, Stream& stream)
{
    switch (task.kind) {
    case TaskKind::FinishGradient:
        return finishGradient(task, stream);
    case TaskKind::SendGradient:
        return sendGradient(task, stream);
    case TaskKind::NormPart:
        return normPart(task, stream);
    case TaskKind::JoinNorm:
        return m_isProbed ? m_probes.join(inputs, stream) : joinNorm(task, inputs, stream);
    case TaskKind::FetchState:
    case TaskKind::StoreState:
        return moveState(task, stream);
    case TaskKind::PrepareUpdate:
        return m_light.prepare(task, inputs, scalarsFor(m_memory.scalars, task.group), stream);
    case TaskKind::UpdateOnDevice:
        return update(task, inputs, stream);
    default:
        return refuse(task);
    }
}

TensorView UpdateTasks::scalarsFor(const ScalarViews& views, GroupId group) const
{
    return m_normByGroup ? views.scalarsOf(group) : views.scalars;
}

const AdamwFactors& UpdateTasks::factorsOf(
    const StepInputs& inputs, const Task& task) const noexcept
{
    return task.version == m_step ? inputs.factors : inputs.before;
}

Status UpdateTasks::finishGradient(const Task& task, Stream& stream)
{
    const GroupMemory& group = m_memory.group(task.group);
    // Group 0 is the tied embedding and padding; the padding has no second gradient.
    const TensorView& tied = m_memory.secondAccumulator;
    const std::int64_t shared = task.group.value == 0 && tied.data ? tied.count() : 0;
    if (shared == 0 && group.sumIsFinished())
        return {};
    const TensorView sum = vectorView(group.accumulator, group.sumType, group.elements);
    const TensorView second = vectorView(tied.data, DType::F32, shared);
    return forParts(group, [&](std::int64_t first, std::int64_t count) -> Status {
        const std::int64_t both = std::clamp(shared - first, std::int64_t{0}, count);
        const DType type = m_memory.gradientType();
        if (both > 0)
            MR_TRY(m_device.ops().finishGradient({sum.rows(first, both), second.rows(first, both),
                                                     group.finished(type, first, both)},
                stream));
        if (both == count)
            return {};
        return m_device.ops().finishGradient({sum.rows(first + both, count - both), {},
                                                 group.finished(type, first + both, count - both)},
            stream);
    });
}

Status UpdateTasks::sendGradient(const Task& task, Stream& stream)
{
    const TensorView from =
        m_memory.group(task.group)
            .finished(m_memory.gradientType(), task.firstElement, task.elementCount);
    m_traffic.toHost += static_cast<std::int64_t>(from.bytes());
    return stream.copy(
        gradientOnHost(m_memory, task, task.firstElement), {from.data, from.bytes()});
}

Status UpdateTasks::normPart(const Task& task, Stream& stream)
{
    const GroupMemory& group = m_memory.group(task.group);
    // The parts are cut at a multiple of a block.
    return forParts(group, [&](std::int64_t first, std::int64_t count) {
        return m_device.ops().normBlocks({group.finished(m_memory.gradientType(), first, count),
                                             normBlocksOf(task.group, first, count)},
            stream);
    });
}

TensorView UpdateTasks::normBlocksOf(GroupId group, std::int64_t first, std::int64_t count) const
{
    std::int64_t block = normBlockCount(first);
    for (GroupId before{0}; before < group; ++before.value)
        block += normBlockCount(m_memory.group(before).elements);
    return m_memory.scalars.normBlocks.rows(block, normBlockCount(count));
}

// The norm of the step, or of one group alone.
Status UpdateTasks::joinNorm(const Task& task, const StepInputs& inputs, Stream& stream)
{
    const ScalarViews& scalars = m_memory.scalars;
    const bool ofGroup = task.group.value >= 0;
    const TensorView blocks = ofGroup
                                  ? normBlocksOf(task.group, 0, m_memory.group(task.group).elements)
                                  : scalars.normBlocks;
    return m_device.ops().normJoin(
        {blocks, scalars.chunksFor(blocks),
            ofGroup ? scalars.scalarsOf(task.group) : scalars.scalars, inputs.clipNorm},
        stream);
}

// A tile of state from its home to a slot, or back.
Status UpdateTasks::moveState(const Task& task, Stream& stream)
{
    const GroupMemory& group = m_memory.group(task.group);
    const StateViews views = stateOnDevice(m_memory, task, task.firstElement, task.elementCount);
    const bool fetch = task.kind == TaskKind::FetchState;
    for (const StatePart part : kPartsOfTile) {
        const TensorView& there = views.of(part);
        const bool stays = isWeights(m_memory, group, part) && (fetch || group.isOnDevice(part));
        if (!there.data || stays)
            continue;
        std::byte* home = m_memory.hostState(task.group, part, task.firstElement, task.stage);
        (fetch ? m_traffic.toDevice : m_traffic.toHost) += static_cast<std::int64_t>(there.bytes());
        MR_TRY(fetch ? stream.copy(there.data, {home, there.bytes()})
                     : stream.copy(home, {there.data, there.bytes()}));
    }
    if (!fetch || !group.streams() || isLight(m_memory.optimizer()))
        return {};
    const TensorView there = gradientOnDevice(m_memory, task, task.firstElement, task.elementCount);
    m_traffic.toDevice += static_cast<std::int64_t>(there.bytes());
    return stream.copy(
        there.data, {group.gradientOnHost(there.dtype, task.firstElement), there.bytes()});
}

// `args` lacks its state.
Status UpdateTasks::enqueueAdamw(const AdamwArgs& args, const StateViews& state, Stream& stream)
{
    const TensorView& high = state.of(StatePart::High);
    const TensorView& low = state.of(StatePart::Low);
    const TensorView& m = state.of(StatePart::FirstMoment);
    const TensorView& v = state.of(StatePart::SecondMoment);
    if (m_memory.stateCodec() == StateCodec::Compact)
        return m_device.ops().adamwCompact(
            {high, low, m, v, state.of(StatePart::FirstScale), state.of(StatePart::SecondScale),
                args.grad, args.scalars, args.factors, args.decayed},
            stream);
    return m_device.ops().adamw(
        {high, low, m, v, args.grad, args.scalars, args.factors, args.decayed}, stream);
}

Status UpdateTasks::updateByAdamw(const Task& task, const StepInputs& inputs, Stream& stream)
{
    const DecayRuns& runs = inputs.ofAdapterB ? m_rateRuns : m_decayRuns;
    for (const DecayRun& whole : runs[static_cast<std::size_t>(task.group.value)]) {
        const DecayRun run = inTask(whole, task);
        if (run.count <= 0)
            continue;
        AdamwArgs args;
        args.grad = gradientOnDevice(m_memory, task, run.first, run.count);
        args.scalars = scalarsFor(m_memory.scalars, task.group);
        args.factors = run.isB ? *inputs.ofAdapterB : factorsOf(inputs, task);
        args.decayed = run.decayed;
        MR_TRY(enqueueAdamw(args, stateOnDevice(m_memory, task, run.first, run.count), stream));
    }
    return {};
}

Status UpdateTasks::update(const Task& task, const StepInputs& inputs, Stream& stream)
{
    const GroupMemory& group = m_memory.group(task.group);
    MR_TRY(m_isProbed ? m_probes.update(task, inputs, stream)
           : isLight(m_memory.optimizer())
               ? m_light.update(task, inputs, scalarsFor(m_memory.scalars, task.group), stream)
               : updateByAdamw(task, inputs, stream));
    if (m_memory.compute() == DType::BF16 || group.streams())
        return {}; // the weights are updated, or come anew when they are used
    const StateViews state = stateOnDevice(m_memory, task, task.firstElement, task.elementCount);
    return m_device.ops().join({state.of(StatePart::High), state.of(StatePart::Low),
                                   vectorView(group.weights, DType::F32, group.elements)
                                       .rows(task.firstElement, task.elementCount)},
        stream);
}

void UpdateTasks::fillJob(const Task& task, const StepInputs& inputs,
    std::vector<HostUpdateRange>& ranges, HostUpdateJob& job) const
{
    ranges.clear();
    for (const DecayRun& whole : m_decayRuns[static_cast<std::size_t>(task.group.value)]) {
        const DecayRun run = inTask(whole, task);
        if (run.count <= 0)
            continue;
        ranges.push_back(hostRange(m_memory, task, run.first, run.count));
        ranges.back().decayed = run.decayed;
    }
    job.ranges = ranges;
    job.factors = factorsOf(inputs, task);
    job.scalars = scalarsFor(m_memory.hostScalars, task.group).as<const StepScalars>();
}

int UpdateTasks::countSkipped(const StepScalars& ofTheStep) const
{
    const auto groups = static_cast<std::int32_t>(m_memory.groupCount());
    if (!m_normByGroup)
        return ofTheStep.finite != 0 ? 0 : groups;
    int skipped = 0;
    for (GroupId group{0}; group.value < groups; ++group.value) {
        StepScalars own;
        std::memcpy(&own, m_memory.hostScalars.scalarsOf(group).data, sizeof own);
        skipped += own.finite != 0 ? 0 : 1;
    }
    return skipped;
}

} // namespace mr
