// Parts of planMemory: what groups hold of weights, state and gradients, and the slots they share.

#include "core/plan/memory_plan_internal.h"

#include <algorithm>

namespace mr {

namespace {

void addState(ItemList& list, Tier tier, const GroupInput& group, bool withHigh)
{
    const auto bytes = [&](StatePart part) {
        return planeOf(group.disk.codec, part).bytes(group.ends.of(group.disk.regionOf(part)));
    };
    if (withHigh)
        list.add(tier, MemoryUse::HighPlane, group.id, bytes(StatePart::High));
    list.add(tier, MemoryUse::LowPlane, group.id, bytes(StatePart::Low));
    list.add(tier, MemoryUse::FirstMoments, group.id,
        bytes(StatePart::FirstMoment) + bytes(StatePart::FirstScale));
    list.add(tier, MemoryUse::SecondMoments, group.id,
        bytes(StatePart::SecondMoment) + bytes(StatePart::SecondScale));
}

// An update behind backward needs slots for all of its group, or its fetches would stand in the
// copy lane before the weights of the next one. A task's slot is one byte, with the slot of weights
// in it.
int stateSlotsFor(const MemoryPlan& cuts, const SlotInput& input)
{
    constexpr std::int64_t kMost = 255 / 2 - 1;
    if (cuts.stateTileElements == 0)
        return 0;
    const std::int64_t tiles =
        (input.largestStream + cuts.stateTileElements - 1) / cuts.stateTileElements;
    return static_cast<int>(std::clamp<std::int64_t>(tiles, kStateSlots, kMost));
}

// May the sums of embedding and head be in the same bytes?
bool haveAlikeEnds(const ModelShape& shape)
{
    const std::vector<WeightShape>& first = shape.groups.front().weights;
    const std::vector<WeightShape>& last = shape.groups.back().weights;
    return shape.groups.front().isTrained() && !shape.tiedHead && first.size() == 1 &&
           !last.empty() && first.back().rows == last.back().rows &&
           first.back().cols == last.back().cols;
}

} // namespace

void shareEnds(const ModelShape& shape, GradientHomes& homes)
{
    homes.endsShare = haveAlikeEnds(shape);
    if (homes.endsShare)
        homes.embeddingFirst = shape.groups.back().weights.back().first;
}

std::int64_t sumElements(const ModelShape& shape, const GradientHomes& homes, std::size_t group)
{
    return homes.endsShare && group == 0 ? 0 : shape.groups[group].elements;
}

void addGroup(
    ItemList& list, const GroupInput& group, const GradientHomes& homes, Precision precision)
{
    const auto all = static_cast<std::size_t>(group.elements);
    const auto onDevice = static_cast<std::size_t>(group.sentFirst);
    const std::size_t compute = computeBytes(precision);
    const bool bf16 = precision == Precision::BF16;

    if (group.weights == Tier::Device)
        list.add(Tier::Device, MemoryUse::Weights, group.id, compute * all);
    if (group.state == Tier::Device)
        addState(list, Tier::Device, group, !bf16);
    else // weights that stay are the high half, which no host updates
        addState(list, Tier::PinnedHost, group,
            !group.behindBackward || !bf16 || group.weights != Tier::Device);
    if (!group.isBlock || homes.sumSlots == 0)
        list.add(Tier::Device, MemoryUse::Accumulators, group.id,
            group.sumBytes * static_cast<std::size_t>(group.sumElements));
    if (!group.sumIsFinished) {
        const bool shared = group.isBlock && homes.finishedSlots > 0;
        list.add(Tier::Device, MemoryUse::Gradients, group.id, compute * (shared ? onDevice : all));
    }
    if (!group.byColumns)
        list.add(Tier::PinnedHost, MemoryUse::Gradients, group.id,
            compute * (static_cast<std::size_t>(group.ends.of(DiskRegion::Gradient)) - onDevice));
}

void addSlots(ItemList& list, MemoryPlan& cuts, const BlockParts& parts, const SlotInput& input)
{
    const auto bytes = [](std::size_t each, int slots, std::int64_t elements) {
        return each * static_cast<std::size_t>(slots) * static_cast<std::size_t>(elements);
    };
    list.add(Tier::Device, MemoryUse::Accumulators, kOfTheRun,
        bytes(cuts.sumBytes[1], cuts.gradients.sumSlots, parts.elements)); // of any block
    list.add(Tier::Device, MemoryUse::Gradients, kOfTheRun,
        bytes(computeBytes(input.precision), cuts.gradients.finishedSlots, parts.onHost));
    const std::int64_t stateTile =
        std::max(kCutElements, input.tileElements / kStateTileShare / kCutElements * kCutElements);
    cuts.stateTileElements = std::min(stateTile, input.largestVisit);
    cuts.stateSlots = stateSlotsFor(cuts, input);
    const bool withHigh = cuts.visitsStream || input.precision == Precision::F32;
    const std::size_t gradient = cuts.visitsStream ? computeBytes(input.precision) : 0;
    list.add(Tier::Device, MemoryUse::StateSlots, kOfTheRun,
        static_cast<std::size_t>(cuts.stateSlots) *
                stateBytes(cuts.stateCodec, cuts.stateTileElements, withHigh) +
            bytes(gradient, cuts.stateSlots, cuts.stateTileElements));
    if (input.precision == Precision::F32 && !input.byColumns)
        list.add(Tier::Device, MemoryUse::UploadLanding, kOfTheRun,
            bytes(4, 1, std::min(input.tileElements, input.largestUpload)));
}

void addLight(ItemList& list, const ModelShape& shape, Optimizer optimizer)
{
    std::int64_t work = 0;
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        const LightLayout layout =
            lightLayout(optimizer, shape.groups[g].weights, isBlock(g, shape.groups.size()));
        list.add(Tier::Device, MemoryUse::Averages, GroupId{static_cast<std::int32_t>(g)},
            sizeof(float) * static_cast<std::size_t>(layout.averages));
        work = std::max(work, layout.work);
    }
    list.add(Tier::Device, MemoryUse::UpdateScratch, kOfTheRun,
        sizeof(float) * static_cast<std::size_t>(work));
}

void addMovedCopies(ItemList& list, const ModelShape& shape, Precision precision)
{
    std::int64_t largest = 0;
    for (std::size_t g = shape.tiedHead ? 1 : 0; g < shape.groups.size(); ++g)
        largest = std::max(largest, shape.groups[g].elements);
    const auto bytes = [&](std::int64_t elements) {
        constexpr std::size_t kAlign = 256; // of each copy
        const std::size_t one = computeBytes(precision) * static_cast<std::size_t>(elements);
        return 2 * ((one + kAlign - 1) / kAlign * kAlign);
    };
    list.add(Tier::Device, MemoryUse::MovedCopies, kOfTheRun, bytes(largest));
    if (shape.tiedHead)
        list.add(Tier::Device, MemoryUse::MovedCopies, GroupId{0}, bytes(shape.groups[0].elements));
}

} // namespace mr
