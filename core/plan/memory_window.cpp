#include "core/plan/memory_plan_internal.h"

namespace mr {

namespace {

constexpr std::size_t kNormBlock = 1024; // elements of one partial norm

std::size_t normBytes(std::int64_t elements)
{
    return sizeof(float) * ((static_cast<std::size_t>(elements) + kNormBlock - 1) / kNormBlock);
}

void addWindowGroup(ItemList& list, const WindowLayout& window, std::size_t g, Precision precision)
{
    const GroupCut& cut = window.groups[g];
    const GroupId id{static_cast<std::int32_t>(g)};
    const auto dense = static_cast<std::size_t>(cut.dense);
    const auto packed = static_cast<std::size_t>(cut.packed);
    const auto columns = static_cast<std::size_t>(cut.columns);
    const std::size_t compute = computeBytes(precision);
    list.add(
        Tier::Device, MemoryUse::UrgentState, id, stateBytes(StateCodec::Plain, 1, true) * dense);
    list.add(Tier::Device, MemoryUse::UrgentGradients, id, urgentGradientBytes(cut, compute));
    list.add(Tier::Device, MemoryUse::ColumnEnergies, id, 2 * sizeof(float) * columns);
    list.add(Tier::Device, MemoryUse::ColumnLists, id, sizeof(std::int32_t) * columns);
    if (window.hasNorm)
        list.add(Tier::Device, MemoryUse::UrgentSums, id, sizeof(float) * dense);
    if (window.onDevice)
        list.add(Tier::Device, MemoryUse::WindowSums, id, sizeof(float) * packed);
    if (!window.sharesPacked(g))
        list.add(Tier::Device, MemoryUse::PackedGradients, id, compute * packed);
    if (!window.direct)
        list.add(Tier::PinnedHost, MemoryUse::Gradients, id, compute * packed);
    const std::size_t sum = window.direct ? compute : sizeof(float);
    list.add(Tier::PinnedHost, MemoryUse::WindowSums, id,
        static_cast<std::size_t>(window.banks) * sum * packed);
}

} // namespace

void addWindow(ItemList& list, const WindowLayout& window, Precision precision)
{
    const std::size_t compute = computeBytes(precision);
    std::size_t largestDense = 0;
    std::size_t largestPacked = 0;
    std::size_t denseNorms = 0;
    std::size_t packedNorms = 0;
    for (std::size_t g = 0; g < window.groups.size(); ++g) {
        const GroupCut& cut = window.groups[g];
        addWindowGroup(list, window, g, precision);
        largestDense = std::max(largestDense, static_cast<std::size_t>(cut.dense));
        if (window.sharesPacked(g))
            largestPacked = std::max(largestPacked, static_cast<std::size_t>(cut.packed));
        denseNorms += normBytes(cut.dense);
        packedNorms += normBytes(cut.packed);
    }
    list.add(Tier::Device, MemoryUse::PackedGradients, kOfTheRun,
        compute * static_cast<std::size_t>(kPackedSlots) * largestPacked);
    list.add(Tier::Device, MemoryUse::UploadSlots, kOfTheRun,
        compute * static_cast<std::size_t>(kUploadSlots) *
            static_cast<std::size_t>(window.uploadElements));
    if (precision == Precision::F32)
        list.add(Tier::Device, MemoryUse::UrgentScratch, kOfTheRun, sizeof(float) * largestDense);
    std::int64_t columns = 0;
    for (const GroupCut& cut : window.groups)
        columns += cut.columns;
    list.add(Tier::PinnedHost, MemoryUse::ColumnEnergies, kOfTheRun,
        sizeof(float) * static_cast<std::size_t>(columns));
    if (!window.hasNorm)
        return;
    list.add(Tier::Device, MemoryUse::WindowScalars, kOfTheRun, kWindowScalarBytes + denseNorms);
    list.add(
        Tier::PinnedHost, MemoryUse::WindowScalars, kOfTheRun, kWindowScalarBytes + packedNorms);
}

} // namespace mr
