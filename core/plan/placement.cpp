#include "core/plan/placement.h"

#include "core/plan/boundary_homes.h"
#include "core/plan/vocabulary_tiles.h"

#include <algorithm>
#include <cmath>

namespace mr {

namespace {

// Seconds per element of the host's side and of the device's, at a share.
struct Sides {
    double host = 0.0;
    double device = 0.0;
};

Sides sidesOf(const Feedback& rates, const VisitBytes& bytes, double share)
{
    const double in =
        (bytes.in * share + bytes.upload * (1.0 - share)) / rates.hostToDeviceBytesPerSecond;
    const double out = bytes.out * share / rates.deviceToHostBytesPerSecond;
    const double update = share / rates.deviceAdamwElementsPerSecond;
    return {(1.0 - share) / rates.hostAdamwElementsPerSecond, std::max({in, out, update})};
}

// A share of every group in turn (Bresenham's line over the groups).
class ShareLine
{
public:
    explicit ShareLine(double share)
        : m_share(share)
    {
    }

    // The next group's share, which firstHostElement() cuts where the line does.
    double next(std::int64_t elements)
    {
        m_wanted += m_share * static_cast<double>(elements);
        std::int64_t cut = std::llround(m_wanted) - m_taken;
        // To the nearest cut: another group makes up the difference.
        cut = std::clamp(
            (cut + kCutElements / 2) / kCutElements * kCutElements, std::int64_t{0}, elements);
        if (cut < elements)
            cut = cut / kCutElements * kCutElements;
        m_taken += cut;
        if (cut == 0 || cut == elements)
            return cut == 0 ? 0.0 : 1.0;
        return (static_cast<double>(cut) + 0.5) / static_cast<double>(elements);
    }

private:
    const double m_share;
    double m_wanted = 0.0;
    std::int64_t m_taken = 0;
};

class SharePlacement final : public Placement
{
public:
    explicit SharePlacement(double share)
        : m_share(share)
    {
    }

    std::vector<GroupPlacement> place(
        const ModelShape& shape, const Budget& /*budget*/, const Feedback& rates) const override
    {
        ShareLine line(balancedShare(rates).value_or(m_share));
        std::vector<GroupPlacement> placements;
        for (const GroupShape& group : shape.groups)
            placements.push_back(
                {Tier::Device, Tier::PinnedHost, Tier::Device, line.next(group.elements)});
        return placements;
    }

    std::optional<double> balancedShare(const Feedback& rates) const override
    {
        return m_share == kBalanced ? std::optional(balancedDeviceShare(rates)) : std::nullopt;
    }

private:
    const double m_share; // or kBalanced
};

class UniformPlacement final : public Placement
{
public:
    explicit UniformPlacement(GroupPlacement placement)
        : m_placement(placement)
    {
    }

    std::vector<GroupPlacement> place(
        const ModelShape& shape, const Budget& /*budget*/, const Feedback& /*last*/) const override
    {
        return {shape.groups.size(), m_placement};
    }

private:
    GroupPlacement m_placement;
};

// Is block `i` one of the share that stays? (Bresenham's line over the blocks.)
bool stays(double share, int i) noexcept
{
    return std::floor(share * (i + 1)) > std::floor(share * i);
}

class StreamedPlacement final : public Placement
{
public:
    explicit StreamedPlacement(const StreamedHomes& homes)
        : m_homes(homes)
    {
    }

    std::vector<GroupPlacement> place(
        const ModelShape& shape, const Budget& /*budget*/, const Feedback& rates) const override
    {
        ShareLine line(balancedShare(rates).value_or(m_homes.deviceShare));
        std::vector<GroupPlacement> placements;
        const int head = shape.layers() - 1;
        int kept = 0; // blocks with weights that stay, so far
        for (int layer = 0; layer <= head; ++layer) {
            const bool isEnd = layer == 0 || layer == head;
            GroupPlacement home{Tier::PinnedHost, Tier::PinnedHost, m_homes.boundary, 0.0};
            if (isEnd)
                home.weights = m_homes.vocabulary;
            else if (stays(m_homes.weightsOnDevice, layer - 1))
                home.weights = Tier::Device;
            const bool stateStays =
                isEnd ? m_homes.stateOnDevice >= 1.0 && home.weights == Tier::Device
                      : home.weights == Tier::Device && keepsState(kept++);
            if (stateStays)
                home.state = Tier::Device;
            home.deviceShare =
                stateStays ? 1.0
                           : line.next(shape.groups[static_cast<std::size_t>(layer)].elements);
            const bool mayBeOnDisk = isEnd || m_homes.diskGroups == DiskGroups::All;
            home.diskShare = stateStays || !mayBeOnDisk ? 0.0 : m_homes.diskShare;
            home.weightsOnDisk = std::min(home.diskShare, m_homes.weightsOnDisk);
            home.gradientsOnDisk = std::min(home.diskShare, m_homes.gradientsOnDisk);
            // From the lowest layer up.
            const double saved = m_homes.boundariesOnDisk * savedLayers(shape.layers(), false);
            if (layer < savedLayers(shape.layers(), false))
                home.boundariesOnDisk = std::clamp(saved - layer, 0.0, 1.0);
            home.activationsOnHost = isEnd ? 0.0 : m_homes.activationsOnHost;
            placements.push_back(home);
        }
        return placements;
    }

    std::optional<double> balancedShare(const Feedback& rates) const override
    {
        if (m_homes.deviceShare != kBalanced)
            return {};
        return balancedDeviceShare(rates, kStreamedVisits);
    }

private:
    // Does the nth block with weights that stay keep its state on the device as well?
    bool keepsState(int nth) const noexcept
    {
        return stays(std::min(1.0, m_homes.stateOnDevice / m_homes.weightsOnDevice), nth);
    }

    StreamedHomes m_homes;
};

} // namespace

std::unique_ptr<const Placement> makeStreamedPlacement(const StreamedHomes& homes)
{
    return std::make_unique<StreamedPlacement>(homes);
}

namespace {

// The update is where the gradient is. Weights that stay, with nothing kept beside them, have no
// state elsewhere.
void placeBehindBackward(const OffloadPolicy& policy, GroupPlacement& home)
{
    home.behindBackward = true;
    home.deviceShare = 1.0;
    home.gradientsOnDisk = 0.0;
    if (home.weights == Tier::Device)
        home.weightsOnDisk = 0.0; // the host has none of them
    if (hasLowPlane(policy.stateCodec))
        return;
    home.diskShare = home.weightsOnDisk;
    if (home.weights == Tier::Device)
        home.state = Tier::Device;
}

// Embedding and head whose home is the host lie there whole.
void placeByTiles(const OffloadPolicy& policy, const ModelShape& shape, GroupPlacement& home)
{
    if (shape.vocabulary.rows > 0 && home.behindBackward)
        home.tileRows = tileRowsOf(shape, policy.tileElements);
    home.diskShare = home.weightsOnDisk = home.gradientsOnDisk = 0.0;
}

void placeFrozen(const GroupShape& group, bool readsFiles, GroupPlacement& home)
{
    home.frozen = home.weights;
    home.packed = group.isPacked();
    home.frozenOnDisk = readsFiles && home.frozen != Tier::Device ? home.weightsOnDisk : 0.0;
}

} // namespace

std::vector<GroupPlacement> placeGroups(const OffloadPolicy& policy, const ModelShape& shape,
    const Budget& budget, const Feedback& rates)
{
    std::vector<GroupPlacement> homes = policy.placement->place(shape, budget, rates);
    const auto first = static_cast<std::size_t>(shape.firstTrained());
    for (std::size_t g = 0; g < std::min(homes.size(), shape.groups.size()); ++g) {
        if (isLight(policy.optimizer))
            placeBehindBackward(policy, homes[g]);
        if (g < first) // no backward reads them
            homes[g].activationsOnHost = 0.0;
        if (g + 1 < first)
            homes[g].boundariesOnDisk = 0.0;
        GroupPlacement& home = homes[g];
        if (shape.groups[g].frozenElements > 0)
            placeFrozen(shape.groups[g], shape.readsFrozen, home);
        const bool isEnd = g == 0 || g + 1 == homes.size();
        if (isEnd && home.weights != Tier::Device)
            placeByTiles(policy, shape, home);
        const bool isTrained = shape.groups[g].isTrained();
        const bool hasStateElsewhere = shape.groups[g].frozenElements == 0 || (isEnd && isTrained);
        if (hasStateElsewhere && !(shape.inTurns && isTrained))
            continue;
        home.weights = Tier::Device;
        home.state = Tier::Device;
        home.deviceShare = 1.0;
        home.diskShare = home.weightsOnDisk = home.gradientsOnDisk = 0.0;
    }
    return homes;
}

bool savesBoundaries(const std::vector<GroupPlacement>& placements) noexcept
{
    return !placements.empty() && placements.front().boundary != Tier::Device;
}

std::unique_ptr<const Placement> makeUniformPlacement(GroupPlacement placement)
{
    return std::make_unique<UniformPlacement>(placement);
}

std::unique_ptr<const Placement> makeSharePlacement(double share)
{
    return std::make_unique<SharePlacement>(std::clamp(share, 0.0, 1.0));
}

std::unique_ptr<const Placement> makeBalancedPlacement()
{
    return std::make_unique<SharePlacement>(kBalanced);
}

double balancedDeviceShare(const Feedback& rates, const VisitBytes& bytes) noexcept
{
    constexpr double kUnknown = 0.25;
    constexpr int kHalvings = 40;
    if (rates.hostToDeviceBytesPerSecond <= 0.0 || rates.deviceToHostBytesPerSecond <= 0.0 ||
        rates.hostAdamwElementsPerSecond <= 0.0 || rates.deviceAdamwElementsPerSecond <= 0.0)
        return kUnknown;
    // The host's side falls with the share and the device's rises: halve towards the crossing.
    double low = 0.0;
    double high = 1.0;
    for (int i = 0; i < kHalvings; ++i) {
        const double middle = 0.5 * (low + high);
        const Sides sides = sidesOf(rates, bytes, middle);
        (sides.host > sides.device ? low : high) = middle;
    }
    return low;
}

std::int64_t firstHostElement(double deviceShare, std::int64_t elements) noexcept
{
    if (deviceShare >= 1.0)
        return elements;
    const auto wanted = static_cast<std::int64_t>(deviceShare * static_cast<double>(elements));
    return wanted / kCutElements * kCutElements;
}

std::int64_t firstOfLastShare(double share, std::int64_t first, std::int64_t end) noexcept
{
    const auto last = static_cast<std::int64_t>(share * static_cast<double>(end - first));
    const std::int64_t before =
        (end - first - last + kCutElements - 1) / kCutElements * kCutElements;
    return std::min(end, first + before);
}

std::int64_t firstSentElement(const GroupPlacement& placement, std::int64_t elements) noexcept
{
    if (placement.behindBackward)
        return elements; // it gets none
    return placement.weights == Tier::Device ? firstHostElement(placement.deviceShare, elements)
                                             : 0;
}

} // namespace mr
