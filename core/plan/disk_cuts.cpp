#include "core/plan/disk_cuts.h"

#include "core/plan/columns.h"
#include "core/plan/placement.h"
#include "core/plan/update_clock.h"

#include <algorithm>

namespace mr {

namespace {

constexpr std::size_t kSkewFrom = std::size_t{1} << 20;

// Bytes of a plane with the gap behind it.
std::size_t skewedBytes(const DiskParts& parts, StatePart part, std::int64_t count) noexcept
{
    const std::size_t bytes = parts.has(part) ? planeOf(parts.codec, part).bytes(count) : 0;
    return bytes + (bytes >= kSkewFrom ? kDiskAlign : 0);
}

struct CutInput {
    GroupId group;
    const HostCuts& at;
    std::int64_t tileElements = 0;
    DiskSends sends;
};

// Index of the tile that has this element, of tiles by group and first element; -1: none has.
template <typename Tile>
std::int32_t holding(const std::vector<Tile>& tiles, GroupId group, std::int64_t element) noexcept
{
    const auto after = std::partition_point(tiles.begin(), tiles.end(), [&](const Tile& tile) {
        return tile.group < group || (tile.group == group && tile.first <= element);
    });
    if (after == tiles.begin())
        return -1;
    const Tile& tile = *(after - 1);
    const bool has = tile.group == group && element < tile.first + tile.count;
    return has ? static_cast<std::int32_t>(after - 1 - tiles.begin()) : -1;
}

int placesFor(int most, std::size_t tiles) noexcept
{
    return static_cast<int>(std::min(static_cast<std::size_t>(most), tiles));
}

void cutRange(DiskCuts& cuts, const CutInput& input, std::int64_t first, std::int64_t end)
{
    while (first < end) {
        const std::int64_t count = hostTileElements(input.at, first, end, input.tileElements);
        DiskRange tile = diskRangeAt(input.at, first, count, input.sends);
        tile.group = input.group;
        if (tile.has(DiskRegion::Weights))
            tile.weights = cuts.weightTiles++;
        if (tile.has(DiskRegion::Gradient))
            tile.gradient = cuts.gradientTiles++;
        cuts.tiles.push_back(tile);
        cuts.tileElements = std::max(cuts.tileElements, tile.count);
        first += tile.count;
    }
}

} // namespace

std::int32_t DiskCuts::tileOf(GroupId group, std::int64_t element) const noexcept
{
    return holding(tiles, group, element);
}

std::int32_t DiskCuts::frozenTileOf(GroupId group, std::int64_t element) const noexcept
{
    return holding(frozen, group, element);
}

std::int32_t DiskCuts::stored(std::int32_t tile, DiskRegion region) const noexcept
{
    const DiskRange& range = tiles[static_cast<std::size_t>(tile)];
    const auto all = static_cast<std::int32_t>(tiles.size());
    switch (region) {
    case DiskRegion::Weights:
        return all + range.weights;
    case DiskRegion::Gradient:
        return all + weightTiles + range.gradient;
    case DiskRegion::State:
        break;
    }
    return tile;
}

bool DiskRange::has(DiskRegion region) const noexcept
{
    return region == DiskRegion::State || (region == DiskRegion::Weights && weights >= 0) ||
           (region == DiskRegion::Gradient && gradient >= 0);
}

bool DiskRange::isRead(DiskRegion region) const noexcept
{
    return has(region) && !(region == DiskRegion::Weights && sendsWeights);
}

bool DiskRange::isInSlot(DiskRegion region) const noexcept
{
    return has(region) || (region == DiskRegion::Gradient && sendsGradient);
}

DiskSends sendsOf(const OffloadPolicy& policy, const StepSpec& spec, bool byColumns) noexcept
{
    const bool follow = updatesFollowGradients(policy, spec, byColumns);
    return {follow, follow && spec.precision == Precision::BF16};
}

DiskSends sendsOf(const StepPlan& plan) noexcept
{
    return {plan.normByGroup, plan.sendsWeights};
}

DiskRange diskRangeAt(
    const HostCuts& cuts, std::int64_t first, std::int64_t count, DiskSends sends) noexcept
{
    DiskRange tile;
    tile.first = first;
    tile.count = count;
    const bool isLate = first >= cuts.lateFirst;
    const bool hasWeights = first >= cuts.weightsFirst;
    const bool hasGradient = first >= cuts.gradientsFirst;
    tile.sendsWeights = hasWeights && sends.weights && !isLate;
    tile.sendsGradient = hasGradient && sends.gradients && !isLate;
    tile.weights = hasWeights ? 0 : -1;
    tile.gradient = hasGradient && !tile.sendsGradient ? 0 : -1;
    return tile;
}

namespace {

// An update behind backward has slots for all tiles of a block, as it has on the device.
int mostSlots(const DiskCuts& cuts, std::span<const HostCuts> groups)
{
    constexpr std::ptrdiff_t kMost = 1024;
    std::ptrdiff_t most = kDiskSlots;
    for (std::size_t g = 1; g + 1 < groups.size(); ++g)
        if (groups[g].behindBackward)
            most = std::max(most, std::ranges::count(cuts.tiles,
                                      GroupId{static_cast<std::int32_t>(g)}, &DiskRange::group));
    return static_cast<int>(std::min(most, kMost));
}

} // namespace

DiskCuts diskCuts(std::span<const HostCuts> groups, std::int64_t tileElements, DiskSends sends)
{
    DiskCuts cuts;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const HostCuts& at = groups[g];
        const CutInput input{GroupId{static_cast<std::int32_t>(g)}, at, tileElements, sends};
        cutRange(cuts, input, at.diskFirst, at.lateFirst);
        cutRange(cuts, input, std::max(at.diskFirst, at.lateFirst), at.end);
    }
    cuts.slots = placesFor(mostSlots(cuts, groups), cuts.tiles.size());
    cuts.weightStages = placesFor(kDiskStages, static_cast<std::size_t>(cuts.weightTiles));
    cuts.gradientStages = placesFor(kDiskStages, static_cast<std::size_t>(cuts.gradientTiles));
    return cuts;
}

DiskCuts diskCuts(const ModelShape& shape, std::span<const GroupPlacement> placements,
    const OffloadPolicy& policy, const Feedback& rates, DiskSends sends)
{
    if (placements.size() != shape.groups.size())
        return {}; // PlanTerms::check() refuses it
    const WindowLayout window = windowLayout(shape, policy, 0.0);
    if (window.isActive())
        return diskCuts(window, shape);
    std::vector<HostCuts> groups;
    for (std::size_t g = 0; g < placements.size(); ++g) {
        const UpdateRule rule =
            policy.clock->rule(GroupId{static_cast<std::int32_t>(g)}, kWholeRun, rates);
        groups.push_back(hostCuts(placements[g], rule.lateShare, shape.groups[g].elements));
    }
    DiskCuts cuts = diskCuts(groups, policy.tileElements, sends);
    for (std::size_t g = 0; g < placements.size(); ++g)
        addFrozenTiles(cuts, GroupId{static_cast<std::int32_t>(g)}, placements[g].frozenOnDisk,
            shape.groups[g], policy.tileElements);
    return cuts;
}

std::int64_t firstFrozenOnDisk(double share, std::int64_t frozenElements) noexcept
{
    return firstOfLastShare(share, 0, frozenElements);
}

void addFrozenTiles(
    DiskCuts& cuts, GroupId group, double share, const GroupShape& shape, std::int64_t tileElements)
{
    const std::int64_t end = shape.frozenElements;
    const std::int64_t most = diskTileElements(tileElements);
    for (std::int64_t first = firstFrozenOnDisk(share, end); first < end; first += most) {
        cuts.frozen.push_back({group, first, std::min(most, end - first)});
        cuts.tileElements = std::max(cuts.tileElements, cuts.frozen.back().count);
    }
    cuts.weightStages =
        placesFor(kDiskStages, static_cast<std::size_t>(cuts.weightTiles) + cuts.frozen.size());
}

std::size_t frozenStageBytes(
    const FrozenTile& tile, const GroupShape& shape, std::size_t each) noexcept
{
    const auto tensors = static_cast<std::size_t>(shape.frozenTensors);
    return diskPages(shape.frozenBytes(tile.first, tile.count, each)) + 2 * kDiskAlign * tensors;
}

DiskRegion DiskParts::regionOf(StatePart part) const noexcept
{
    const bool isMaster = part == StatePart::High || part == StatePart::Low;
    return isMaster && !(part == StatePart::Low && low) ? DiskRegion::Weights : DiskRegion::State;
}

std::size_t diskRegionBytes(const DiskParts& parts, DiskRegion region, std::int64_t count) noexcept
{
    if (region == DiskRegion::Gradient)
        return static_cast<std::size_t>(count) * (parts.low ? 2 : 4);
    std::size_t bytes = 0;
    for (const StatePart part : kPartsOfTile)
        bytes += parts.regionOf(part) == region ? skewedBytes(parts, part, count) : 0;
    return std::max<std::size_t>(bytes, region == DiskRegion::State ? 1 : 0);
}

std::size_t diskPlaneOffset(const DiskParts& parts, StatePart part, std::int64_t count) noexcept
{
    std::size_t offset = 0;
    for (const StatePart before : kPartsOfTile) {
        if (before == part)
            break;
        if (parts.regionOf(before) == parts.regionOf(part))
            offset += skewedBytes(parts, before, count);
    }
    return offset;
}

std::size_t diskRegionOffset(
    const DiskParts& parts, const DiskRange& tile, DiskRegion region) noexcept
{
    std::size_t offset = 0;
    for (const DiskRegion before : {DiskRegion::State, DiskRegion::Weights}) {
        if (before < region && tile.has(before))
            offset += diskPages(diskRegionBytes(parts, before, tile.count));
    }
    return offset;
}

std::size_t diskSlotBytes(const DiskParts& parts, const DiskRange& tile) noexcept
{
    const std::size_t gradient =
        tile.isInSlot(DiskRegion::Gradient)
            ? diskPages(diskRegionBytes(parts, DiskRegion::Gradient, tile.count))
            : 0;
    return diskRegionOffset(parts, tile, DiskRegion::Gradient) + gradient;
}

} // namespace mr
