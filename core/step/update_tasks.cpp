// Updates of optimizer state and its visits to the device, in either codec: part of StepExecutor.

#include "core/step/step_executor.h"

#include <algorithm>

namespace mr {

static_assert(kScaledElements == static_cast<std::int64_t>(kCompactGroup));
static_assert(kSlotAlign % kScaledElements == 0, "runs of weight decay begin where a group does");

std::byte* StepExecutor::planeAt(GroupId group, StatePart part, std::int64_t value) const
{
    return m_memory.group(group).state[static_cast<std::size_t>(part)] +
           static_cast<std::size_t>(value) * planeOf(m_memory.stateCodec(), part).valueBytes;
}

// Where the host finds the finished gradient of `first`: as RunMemory::hostState.
std::byte* StepExecutor::hostGradient(const Task& task, std::int64_t first) const
{
    const GroupMemory& group = m_memory.group(task.group);
    const DType type = m_memory.gradientType();
    if (first < group.diskEnds.gradients)
        return group.gradientOnHost(type, first);
    const std::int32_t tile = m_memory.disk().tileOf(task.group, first);
    return m_memory.diskRegion(task.stage, tile, DiskRegion::Gradient).data() +
           static_cast<std::size_t>(first - task.firstElement) * sizeOf(type);
}

// What the host updates of one decay run. Precondition: `first` is a multiple of kScaledElements.
HostUpdateRange StepExecutor::hostRange(
    const Task& task, std::int64_t first, std::int64_t count) const
{
    const auto at = [&](StatePart part) {
        return m_memory.hostState(task.group, part, first, task.stage);
    };
    HostUpdateRange out;
    AdamwRange& range = out.range;
    range.grad = hostGradient(task, first);
    range.gradType = m_memory.gradientType();
    range.count = static_cast<std::size_t>(count);
    if (m_memory.stateCodec() == StateCodec::Compact) {
        std::array<std::byte*, kStateParts> parts{};
        for (const StatePart part : kPartsOfTile)
            parts[static_cast<std::size_t>(part)] = at(part);
        out.compact = compactRange(parts, count);
        return out;
    }
    range.high = reinterpret_cast<std::uint16_t*>(at(StatePart::High));
    range.low = reinterpret_cast<std::int16_t*>(at(StatePart::Low));
    range.m = reinterpret_cast<float*>(at(StatePart::FirstMoment));
    range.v = reinterpret_cast<float*>(at(StatePart::SecondMoment));
    return out;
}

void StepExecutor::findHostRanges(const Task& task, std::vector<HostUpdateRange>& ranges) const
{
    const std::int64_t end = task.firstElement + task.elementCount;
    ranges.clear();
    for (const DecayRun& run : m_decayRuns[static_cast<std::size_t>(task.group.value)]) {
        const std::int64_t first = std::max(run.first, task.firstElement);
        const std::int64_t count = std::min(run.first + run.count, end) - first;
        if (count <= 0)
            continue;
        ranges.push_back(hostRange(task, first, count));
        ranges.back().decayed = run.decayed;
    }
}

// In BF16 weights that stay on the device are the high half.
bool StepExecutor::isWeights(const GroupMemory& group, StatePart part) const
{
    return part == StatePart::High && m_memory.compute() == DType::BF16 && !group.streams();
}

// Where the state of [first, first + count) is while the device updates it.
StateViews StepExecutor::stateOnDevice(
    const Task& task, std::int64_t first, std::int64_t count) const
{
    const GroupMemory& group = m_memory.group(task.group);
    const StateCodec codec = m_memory.stateCodec();
    StateViews views;
    for (const StatePart part : kPartsOfTile) {
        const StatePlane& plane = planeOf(codec, part);
        if (!plane.exists())
            continue;
        const auto index = static_cast<std::size_t>(part);
        std::byte* base = group.state[index];
        std::int64_t offset = first;
        if (isWeights(group, part)) {
            base = group.weights;
        } else if (!group.stateOnDevice) {
            base = m_memory.stateSlots[task.slot].parts[index];
            offset = first - task.firstElement;
        }
        const auto value = static_cast<std::size_t>(offset / plane.elementsPerValue);
        views.planes[index] =
            vectorView(base + value * plane.valueBytes, typeOf(codec, part), plane.values(count));
    }
    return views;
}

// The same of the gradient: where weights stream it comes back with the state.
TensorView StepExecutor::gradientOnDevice(
    const Task& task, std::int64_t first, std::int64_t count) const
{
    const GroupMemory& group = m_memory.group(task.group);
    const DType type = m_memory.gradientType();
    if (!group.streams())
        return group.finished(type, first, count);
    const auto offset = static_cast<std::size_t>(first - task.firstElement);
    return vectorView(m_memory.stateSlots[task.slot].gradient + offset * sizeOf(type), type, count);
}

// A tile of state from its home to a slot, or back.
Status StepExecutor::moveState(const Task& task, Stream& lane)
{
    const GroupMemory& group = m_memory.group(task.group);
    const StateViews views = stateOnDevice(task, task.firstElement, task.elementCount);
    const bool fetch = task.kind == TaskKind::FetchState;
    for (const StatePart part : kPartsOfTile) {
        const TensorView& there = views.of(part);
        if (!there.data || (fetch && isWeights(group, part))) // which are on the device
            continue;
        const std::int64_t per = planeOf(m_memory.stateCodec(), part).elementsPerValue;
        std::byte* home = planeAt(task.group, part, task.firstElement / per);
        (fetch ? m_h2dBytes : m_d2hBytes) += static_cast<std::int64_t>(there.bytes());
        MR_TRY(fetch ? lane.copy(there.data, {home, there.bytes()})
                     : lane.copy(home, {there.data, there.bytes()}));
    }
    if (!fetch || !group.streams())
        return {};
    const TensorView there = gradientOnDevice(task, task.firstElement, task.elementCount);
    m_h2dBytes += static_cast<std::int64_t>(there.bytes());
    return lane.copy(
        there.data, {group.gradientOnHost(there.dtype, task.firstElement), there.bytes()});
}

// `args` lacks its state.
Status StepExecutor::enqueueUpdate(const AdamwArgs& args, const StateViews& state, Stream& lane)
{
    const TensorView& high = state.of(StatePart::High);
    const TensorView& low = state.of(StatePart::Low);
    const TensorView& m = state.of(StatePart::FirstMoment);
    const TensorView& v = state.of(StatePart::SecondMoment);
    if (m_memory.stateCodec() == StateCodec::Compact)
        return m_device.ops().adamwCompact(
            {high, low, m, v, state.of(StatePart::FirstScale), state.of(StatePart::SecondScale),
                args.grad, args.scalars, args.factors, args.decayed},
            lane);
    return m_device.ops().adamw(
        {high, low, m, v, args.grad, args.scalars, args.factors, args.decayed}, lane);
}

Status StepExecutor::updateOnDevice(const Task& task, const StepInputs& inputs, Stream& lane)
{
    const GroupMemory& group = m_memory.group(task.group);
    const std::int64_t end = task.firstElement + task.elementCount;
    for (const DecayRun& run : m_decayRuns[static_cast<std::size_t>(task.group.value)]) {
        const std::int64_t first = std::max(run.first, task.firstElement);
        const std::int64_t count = std::min(run.first + run.count, end) - first;
        if (count <= 0)
            continue;
        AdamwArgs args;
        args.grad = gradientOnDevice(task, first, count);
        args.scalars = scalarsFor(m_memory.scalars, task.group);
        args.factors = factorsOf(inputs, task);
        args.decayed = run.decayed;
        MR_TRY(enqueueUpdate(args, stateOnDevice(task, first, count), lane));
    }
    if (m_memory.compute() == DType::BF16 || group.streams())
        return {}; // the weights are updated, or come anew when they are used
    const StateViews state = stateOnDevice(task, task.firstElement, task.elementCount);
    return m_device.ops().join({state.of(StatePart::High), state.of(StatePart::Low),
                                   vectorView(group.weights, DType::F32, group.elements)
                                       .rows(task.firstElement, task.elementCount)},
        lane);
}

} // namespace mr
