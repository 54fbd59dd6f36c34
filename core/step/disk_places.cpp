#include "core/step/disk_places.h"

namespace mr {

// The plan has a page more than they need, to begin at one.
DiskPlaces::DiskPlaces(const TierStore& tiers)
    : m_codec(tiers.plan().stateCodec)
    , m_cuts(tiers.plan().disk)
    , m_parts(tiers.plan().diskParts)
{
    const MemoryPlan& plan = tiers.plan();
    const std::span<std::byte> bytes = tiers.find(Tier::PinnedHost, MemoryUse::DiskSlots);
    if (bytes.empty())
        return;
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    m_all = bytes.subspan(
        (kDiskAlign - address % kDiskAlign) % kDiskAlign, plan.diskStage(plan.diskStages()));
    for (int stage = 0; stage < plan.diskStages(); ++stage) {
        const std::size_t begin = plan.diskStage(stage);
        m_places.push_back(m_all.subspan(begin, plan.diskStage(stage + 1) - begin));
    }
}

std::span<std::byte> DiskPlaces::region(
    int stage, std::int32_t tile, DiskRegion region) const noexcept
{
    const DiskRange& range = m_cuts.tiles[static_cast<std::size_t>(tile)];
    const std::size_t bytes = diskPages(diskRegionBytes(m_parts, region, range.count));
    const bool isSlot = stage < m_cuts.slots;
    return of(stage).subspan(isSlot ? diskRegionOffset(m_parts, range, region) : 0, bytes);
}

std::byte* DiskPlaces::plane(
    int stage, std::int32_t tile, StatePart part, std::int64_t element) const noexcept
{
    const DiskRange& range = m_cuts.tiles[static_cast<std::size_t>(tile)];
    const StatePlane& plane = planeOf(m_codec, part);
    const std::int64_t value = (element - range.first) / plane.elementsPerValue;
    return region(stage, tile, m_parts.regionOf(part)).data() +
           diskPlaneOffset(m_parts, part, range.count) +
           static_cast<std::size_t>(value) * plane.valueBytes;
}

} // namespace mr
