#include "core/step/group_memory.h"

#include "core/model/frozen_model.h"

#include <algorithm>

namespace mr {
namespace {

constexpr std::array<std::array<DType, kStateParts>, kStateCodecs> kTypes = {{
    {DType::U16, DType::I16, DType::F32, DType::F32, DType::F32, DType::F32},
    {DType::U16, DType::I8, DType::I8, DType::U8, DType::F32, DType::F32},
    {DType::U16, DType::I16, DType::F32, DType::F32, DType::F32, DType::F32},
    {DType::U16, DType::I8, DType::F32, DType::F32, DType::F32, DType::F32},
    {DType::U16, DType::I8, DType::F32, DType::F32, DType::F32, DType::F32},
}};

// Scales lie behind their moments.
void bindState(const TierStore& tiers, GroupId id, DType compute, GroupMemory& group)
{
    const StateCodec codec = tiers.plan().stateCodec;
    const auto& onDevice = tiers.plan().statesOnDevice; // empty in an evaluation
    group.stateOnDevice = !onDevice.empty() && onDevice[static_cast<std::size_t>(id.value)];
    const Tier tier = group.stateOnDevice ? Tier::Device : Tier::PinnedHost;
    const std::int64_t inMemory = group.stateOnDevice ? group.elements : group.diskEnds.state;
    const auto bind = [&](StatePart part, MemoryUse use, StatePart behind) {
        std::byte* plane = tiers.find(tier, use, id).data();
        group.state[static_cast<std::size_t>(part)] = plane;
        if (plane && behind != part && planeOf(codec, behind).exists())
            group.state[static_cast<std::size_t>(behind)] =
                plane + planeOf(codec, part).bytes(inMemory);
    };
    bind(StatePart::High, MemoryUse::HighPlane, StatePart::High);
    bind(StatePart::Low, MemoryUse::LowPlane, StatePart::Low);
    bind(StatePart::FirstMoment, MemoryUse::FirstMoments, StatePart::FirstScale);
    bind(StatePart::SecondMoment, MemoryUse::SecondMoments, StatePart::SecondScale);
    const bool isLightUpdate = isLight(tiers.plan().optimizer);
    group.highOnDevice =
        compute == DType::BF16 && group.weights && (group.stateOnDevice || isLightUpdate);
    if (group.highOnDevice)
        group.state[static_cast<std::size_t>(StatePart::High)] = group.weights;
}

// Blocks take turns in shared slots (GradientHomes), and so may embedding and head.
void bindGradient(
    const TierStore& tiers, GroupId id, bool isBlock, DType compute, GroupMemory& group)
{
    const GradientHomes& homes = tiers.plan().gradients;
    const auto slot = [&](MemoryUse use, int slots) {
        const std::span<std::byte> shared = tiers.find(Tier::Device, use);
        const auto index = static_cast<std::size_t>((id.value - 1) % slots);
        return shared.data() + shared.size() / static_cast<std::size_t>(slots) * index;
    };
    const auto own = [&](MemoryUse use) { return tiers.find(Tier::Device, use, id).data(); };
    const GroupId head{static_cast<std::int32_t>(tiers.plan().sumBytes.size()) - 1};
    const auto before = static_cast<std::size_t>(group.sentFirst);
    group.accumulator = isBlock && homes.sumSlots > 0
                            ? slot(MemoryUse::Accumulators, homes.sumSlots)
                            : own(MemoryUse::Accumulators);
    if (id.value == 0 && homes.endsShare)
        group.accumulator = tiers.find(Tier::Device, MemoryUse::Accumulators, head).data() +
                            static_cast<std::size_t>(homes.embeddingFirst) * sizeof(float);
    if (!group.accumulator)
        return; // evaluation only
    const auto index = static_cast<std::size_t>(id.value);
    group.sumType = tiers.plan().sumBytes[index] == sizeOf(compute) ? compute : DType::F32;
    if (tiers.plan().sumIsFinished(index)) {
        group.gradient = group.accumulator;
        group.sentGradient = group.accumulator + before * tiers.plan().gradientBytes;
        return;
    }
    group.gradient = own(MemoryUse::Gradients);
    group.sentGradient = isBlock && homes.finishedSlots > 0
                             ? slot(MemoryUse::Gradients, homes.finishedSlots)
                             : group.gradient + before * sizeOf(DType::BF16);
}

} // namespace

DType typeOf(StateCodec codec, StatePart part) noexcept
{
    return kTypes[static_cast<std::size_t>(codec)][static_cast<std::size_t>(part)];
}

CompactRange compactRange(
    const std::array<std::byte*, kStateParts>& at, std::int64_t count) noexcept
{
    const auto part = [&](StatePart p) { return at[static_cast<std::size_t>(p)]; };
    return {reinterpret_cast<std::uint16_t*>(part(StatePart::High)),
        reinterpret_cast<std::int8_t*>(part(StatePart::Low)),
        reinterpret_cast<std::int8_t*>(part(StatePart::FirstMoment)),
        reinterpret_cast<std::uint8_t*>(part(StatePart::SecondMoment)),
        reinterpret_cast<float*>(part(StatePart::FirstScale)),
        reinterpret_cast<float*>(part(StatePart::SecondScale)), static_cast<std::size_t>(count)};
}

CompactRange compactRange(const GroupMemory& group, std::int64_t first, std::int64_t count) noexcept
{
    std::array<std::byte*, kStateParts> at = group.state;
    for (const StatePart part : kPartsOfTile)
        at[static_cast<std::size_t>(part)] += planeOf(StateCodec::Compact, part).bytes(first);
    return compactRange(at, count);
}

GroupMemory bindGroup(const TierStore& tiers, const ParamTable& table, GroupId id, DType compute,
    std::span<std::byte* const> weightSlots)
{
    const auto index = static_cast<std::size_t>(id.value);
    const bool isBlock = index > 0 && index + 1 < table.groups.size();
    GroupMemory group;
    group.elements = table.groups[index].elements;
    group.weights = tiers.find(Tier::Device, MemoryUse::Weights, id).data();
    group.sentFirst = tiers.plan().sentFirst[index];
    group.diskEnds = tiers.plan().diskEnds[index];
    bindGradient(tiers, id, isBlock, compute, group);
    group.hostGradient = tiers.find(Tier::PinnedHost, MemoryUse::Gradients, id).data();
    bindState(tiers, id, compute, group);
    group.averages = tiers.find(Tier::Device, MemoryUse::Averages, id);
    group.frozen = tiers.find(Tier::Device, MemoryUse::FrozenWeights, id).data();
    group.frozenOnHost = tiers.find(Tier::PinnedHost, MemoryUse::FrozenWeights, id);
    group.frozenElements = frozenElements(table, id);
    group.packed = packedGroup(table, id, compute);
    const ParamTable& model = modelTable(table, id);
    if (std::byte* stay = group.modelWeights())
        group.weightViews.push_back(blockTensors(model, id, stay, compute));
    else
        for (std::byte* slot : weightSlots)
            group.weightViews.push_back(blockTensors(model, id, slot, compute));
    group.adapter = blockAdapter(table, id, group.weights, compute);
    group.adapterGradients = blockAdapter(table, id, group.accumulator, group.sumType);
    if (group.accumulator && !group.isFrozen())
        group.gradientViews = blockTensors(table, id, group.accumulator, group.sumType);
    return group;
}

namespace {

bool haveEqualSlots(const ParamGroup& a, const ParamGroup& b)
{
    return std::ranges::equal(
        a.paramSlots, b.paramSlots, [](const ParamSlot& x, const ParamSlot& y) {
            return x.first == y.first && x.count() == y.count();
        });
}

std::vector<TensorView> gapsOf(const ParamGroup& group, const GroupMemory& memory)
{
    std::vector<TensorView> gaps;
    for (std::size_t i = 0; i < group.paramSlots.size(); ++i) {
        const std::int64_t begin = group.paramSlots[i].first + group.paramSlots[i].count();
        const bool isLast = i + 1 == group.paramSlots.size();
        const std::int64_t end = isLast ? group.elements : group.paramSlots[i + 1].first;
        if (begin < end)
            gaps.push_back(vectorView(
                memory.accumulator + static_cast<std::size_t>(begin) * sizeOf(memory.sumType),
                memory.sumType, end - begin));
    }
    return gaps;
}

} // namespace

void bindSharedGaps(
    const GradientHomes& homes, const ParamTable& table, std::vector<GroupMemory>& groups)
{
    std::vector<std::size_t> trained; // blocks
    for (std::size_t g = 1; g + 1 < groups.size(); ++g)
        if (groups[g].accumulator && table.groups[g].elements > 0)
            trained.push_back(g);
    const auto isLikeTheFirst = [&](std::size_t g) {
        return haveEqualSlots(table.groups[trained.front()], table.groups[g]);
    };
    if (homes.sumSlots == 0 || std::ranges::all_of(trained, isLikeTheFirst))
        return;
    for (const std::size_t g : trained)
        groups[g].sharedGaps = gapsOf(table.groups[g], groups[g]);
}

std::vector<StateSlot> bindStateSlots(const TierStore& tiers, DType compute)
{
    std::vector<StateSlot> slots;
    std::byte* at = tiers.find(Tier::Device, MemoryUse::StateSlots).data();
    if (!at)
        return slots;
    const std::int64_t elements = tiers.plan().stateTileElements;
    const bool streamed = tiers.plan().visitsStream;
    const bool withHigh = streamed || compute == DType::F32;
    slots.resize(static_cast<std::size_t>(tiers.plan().stateSlots));
    for (StateSlot& slot : slots) {
        for (const StatePart part : kPartsOfTile) {
            const StatePlane& plane = planeOf(tiers.plan().stateCodec, part);
            if (!plane.exists() || (part == StatePart::High && !withHigh))
                continue;
            slot.parts[static_cast<std::size_t>(part)] = at;
            at += plane.bytes(elements);
        }
        if (!streamed)
            continue;
        slot.gradient = at;
        at += static_cast<std::size_t>(elements) * sizeOf(compute);
    }
    return slots;
}

} // namespace mr
