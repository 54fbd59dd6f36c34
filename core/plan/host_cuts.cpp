#include "core/plan/host_cuts.h"

#include "core/plan/placement.h"

#include <algorithm>

namespace mr {

namespace {

// Where the next tile must end: the first of the group's cuts behind `first`, or `end`.
std::int64_t nextCut(const HostCuts& cuts, std::int64_t first, std::int64_t end) noexcept
{
    for (const std::int64_t cut : {cuts.diskFirst, cuts.weightsFirst, cuts.gradientsFirst})
        end = cut > first ? std::min(end, cut) : end;
    return end;
}

} // namespace

HostCuts hostCuts(const GroupPlacement& placement, double lateShare, std::int64_t elements) noexcept
{
    HostCuts cuts;
    cuts.end = elements;
    cuts.hostFirst = firstHostElement(placement.deviceShare, elements);
    cuts.lateFirst = firstOfLastShare(lateShare, cuts.hostFirst, elements);
    cuts.behindBackward = placement.behindBackward;
    const std::int64_t first = cuts.behindBackward ? 0 : cuts.hostFirst;
    const auto lastShare = [&](double share) {
        return placement.state == Tier::Device ? elements
                                               : firstOfLastShare(share, first, elements);
    };
    cuts.diskFirst = lastShare(placement.diskShare);
    cuts.weightsFirst = std::max(cuts.diskFirst, lastShare(placement.weightsOnDisk));
    cuts.gradientsFirst = std::max(cuts.diskFirst, lastShare(placement.gradientsOnDisk));
    return cuts;
}

HostCuts hostCuts(const GroupAnswers& answers, std::int64_t elements) noexcept
{
    GroupPlacement home;
    home.state = answers.state;
    home.deviceShare = answers.deviceShare;
    home.diskShare = answers.diskShare;
    home.weightsOnDisk = answers.weightsOnDisk;
    home.gradientsOnDisk = answers.gradientsOnDisk;
    home.behindBackward = answers.behindBackward;
    return hostCuts(home, answers.lateShare, elements);
}

std::int64_t hostTileElements(
    const HostCuts& cuts, std::int64_t first, std::int64_t end, std::int64_t tileElements) noexcept
{
    const std::int64_t most =
        first >= cuts.diskFirst ? diskTileElements(tileElements) : tileElements;
    return elementsUpToCut(cuts, first, end, most);
}

std::int64_t elementsUpToCut(
    const HostCuts& cuts, std::int64_t first, std::int64_t end, std::int64_t most) noexcept
{
    return std::min(most, nextCut(cuts, first, end) - first);
}

std::int64_t diskTileElements(std::int64_t tileElements) noexcept
{
    return std::max(kCutElements, tileElements / kDiskTileShare / kCutElements * kCutElements);
}

} // namespace mr
