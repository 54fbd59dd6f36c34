#include "core/step/state_places.h"

namespace mr {

std::byte* planeAt(const RunMemory& memory, GroupId group, StatePart part, std::int64_t value)
{
    return memory.group(group).state[static_cast<std::size_t>(part)] +
           static_cast<std::size_t>(value) * planeOf(memory.stateCodec(), part).valueBytes;
}

bool isWeights(const RunMemory& memory, const GroupMemory& group, StatePart part)
{
    return part == StatePart::High && memory.compute() == DType::BF16 &&
           (!group.streams() || isLight(memory.optimizer()));
}

StateViews stateOnDevice(
    const RunMemory& memory, const Task& task, std::int64_t first, std::int64_t count)
{
    const GroupMemory& group = memory.group(task.group);
    const StateCodec codec = memory.stateCodec();
    StateViews views;
    for (const StatePart part : kPartsOfTile) {
        const StatePlane& plane = planeOf(codec, part);
        if (!plane.exists())
            continue;
        const auto index = static_cast<std::size_t>(part);
        std::byte* base = group.state[index];
        std::int64_t offset = first;
        if (isWeights(memory, group, part)) {
            base = isLight(memory.optimizer()) ? memory.updatedWeights(task) : group.weights;
            offset = first - memory.weightsFirst(task);
        } else if (!group.stateOnDevice) {
            base = memory.stateSlots[memory.slotsOf(task).state].parts[index];
            offset = first - task.firstElement;
        }
        const auto value = static_cast<std::size_t>(offset / plane.elementsPerValue);
        views.planes[index] =
            vectorView(base + value * plane.valueBytes, typeOf(codec, part), plane.values(count));
    }
    return views;
}

TensorView gradientOnDevice(
    const RunMemory& memory, const Task& task, std::int64_t first, std::int64_t count)
{
    const GroupMemory& group = memory.group(task.group);
    const DType type = memory.gradientType();
    if (!group.streams() || isLight(memory.optimizer()))
        return group.finished(type, first, count);
    const auto offset = static_cast<std::size_t>(first - task.firstElement);
    return vectorView(memory.stateSlots[task.slot].gradient + offset * sizeOf(type), type, count);
}

std::byte* gradientOnHost(const RunMemory& memory, const Task& task, std::int64_t first)
{
    const GroupMemory& group = memory.group(task.group);
    const DType type = memory.gradientType();
    if (first < group.diskEnds.gradients)
        return group.gradientOnHost(type, first);
    const std::int32_t tile = memory.disk().cuts().tileOf(task.group, first);
    return memory.disk().region(task.stage, tile, DiskRegion::Gradient).data() +
           static_cast<std::size_t>(first - task.firstElement) * sizeOf(type);
}

HostUpdateRange hostRange(
    const RunMemory& memory, const Task& task, std::int64_t first, std::int64_t count)
{
    const auto at = [&](StatePart part) {
        return memory.hostState(task.group, part, first, task.stage);
    };
    HostUpdateRange out;
    AdamwRange& range = out.range;
    range.grad = gradientOnHost(memory, task, first);
    range.gradType = memory.gradientType();
    range.count = static_cast<std::size_t>(count);
    if (memory.stateCodec() == StateCodec::Compact) {
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

} // namespace mr
