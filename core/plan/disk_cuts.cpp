#include "core/plan/disk_cuts.h"

#include "core/plan/placement.h"
#include "core/plan/update_clock.h"

#include <algorithm>

namespace mr {

namespace {

constexpr std::size_t kSkewFrom = std::size_t{1} << 20;

// Of a plane, with the gap behind it.
std::size_t skewedBytes(const DiskParts& parts, StatePart part, std::int64_t count) noexcept
{
    const std::size_t bytes = parts.has(part) ? planeOf(parts.codec, part).bytes(count) : 0;
    return bytes + (bytes >= kSkewFrom ? kDiskAlign : 0);
}

std::int64_t diskTile(std::int64_t tileElements) noexcept
{
    return std::max(kCutElements, tileElements / kDiskTileShare / kCutElements * kCutElements);
}

void cutRange(
    DiskCuts& cuts, GroupId group, std::int64_t first, std::int64_t end, std::int64_t tileElements)
{
    for (; first < end; first += tileElements) {
        const std::int64_t count = std::min(tileElements, end - first);
        cuts.tiles.push_back({group, first, count});
        cuts.tileElements = std::max(cuts.tileElements, count);
    }
}

} // namespace

std::int32_t DiskCuts::tileOf(GroupId group, std::int64_t element) const noexcept
{
    const auto after = std::partition_point(tiles.begin(), tiles.end(), [&](const DiskRange& tile) {
        return tile.group < group || (tile.group == group && tile.first <= element);
    });
    if (after == tiles.begin())
        return -1;
    const DiskRange& tile = *(after - 1);
    const bool has = tile.group == group && element < tile.first + tile.count;
    return has ? static_cast<std::int32_t>(after - 1 - tiles.begin()) : -1;
}

HostCuts hostCuts(const GroupPlacement& placement, double lateShare, std::int64_t elements) noexcept
{
    HostCuts cuts;
    cuts.end = elements;
    cuts.hostFirst = firstHostElement(placement.deviceShare, elements);
    cuts.lateFirst = firstOfLastShare(lateShare, cuts.hostFirst, elements);
    const double onDisk = placement.state == Tier::Device ? 0.0 : placement.diskShare;
    cuts.diskFirst = firstOfLastShare(onDisk, cuts.hostFirst, elements);
    return cuts;
}

std::int64_t hostTileElements(
    const HostCuts& cuts, std::int64_t first, std::int64_t end, std::int64_t tileElements) noexcept
{
    if (first >= cuts.diskFirst)
        return std::min(diskTile(tileElements), end - first);
    return std::min(tileElements, std::min(end, cuts.diskFirst) - first);
}

DiskCuts diskCuts(std::span<const HostCuts> groups, std::int64_t tileElements)
{
    DiskCuts cuts;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const HostCuts& group = groups[g];
        const GroupId id{static_cast<std::int32_t>(g)};
        const std::int64_t tile = diskTile(tileElements);
        cutRange(cuts, id, group.diskFirst, group.lateFirst, tile);
        cutRange(cuts, id, std::max(group.diskFirst, group.lateFirst), group.end, tile);
    }
    cuts.slots = static_cast<int>(std::min<std::size_t>(kDiskSlots, cuts.tiles.size()));
    return cuts;
}

DiskCuts diskCuts(const ModelShape& shape, std::span<const GroupPlacement> placements,
    const OffloadPolicy& policy, const Feedback& rates)
{
    if (placements.size() != shape.groups.size())
        return {}; // refused by whoever asks for a plan
    std::vector<HostCuts> groups;
    for (std::size_t g = 0; g < placements.size(); ++g) {
        const UpdateRule rule =
            policy.clock->rule(GroupId{static_cast<std::int32_t>(g)}, kWholeRun, rates);
        groups.push_back(hostCuts(placements[g], rule.lateShare, shape.groups[g].elements));
    }
    return diskCuts(groups, policy.tileElements);
}

bool DiskParts::has(StatePart part) const noexcept
{
    if (part == StatePart::High || (part == StatePart::Low && !low))
        return false;
    return planeOf(codec, part).exists();
}

std::size_t diskTileBytes(const DiskParts& parts, std::int64_t count) noexcept
{
    std::size_t bytes = 0;
    for (const StatePart part : kPartsOfTile)
        bytes += skewedBytes(parts, part, count);
    return bytes;
}

std::size_t diskPlaneOffset(const DiskParts& parts, StatePart part, std::int64_t count) noexcept
{
    std::size_t offset = 0;
    for (const StatePart before : kPartsOfTile) {
        if (before == part)
            break;
        offset += skewedBytes(parts, before, count);
    }
    return offset;
}

} // namespace mr
