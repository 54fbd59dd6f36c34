#include "core/plan/boundary_homes.h"

#include "core/plan/disk_cuts.h"
#include "core/plan/traversal.h"

#include <algorithm>
#include <cmath>

namespace mr {

namespace {

using Pass = WorkItem::Pass;

// From its save to its load, in items of work, by layer, then micro-batch in flight. The first
// micro-batch in a slot stands for those that take turns there.
std::vector<std::int64_t> idleTimes(
    const Traversal& traversal, int layers, int saved, int microBatches, int inFlight)
{
    const auto flying = static_cast<std::size_t>(inFlight);
    std::vector<std::int64_t> idle(static_cast<std::size_t>(saved) * flying);
    std::int64_t at = 0;
    for (const WorkItem& item : traversal.order(layers, microBatches)) {
        ++at;
        const bool isForward = item.pass == Pass::Forward;
        const int layer = isForward ? item.layer.value : item.layer.value - 1;
        if (item.micro.value >= inFlight || layer < 0 || layer >= saved)
            continue;
        idle[static_cast<std::size_t>(layer) * flying +
             static_cast<std::size_t>(item.micro.value)] += isForward ? -at : at;
    }
    return idle;
}

// Turns the numbers of one layer's slots into "on disk" for so many of those idle longest.
void placeLayer(std::span<const std::int64_t> idle, std::size_t wanted, BoundaryHomes& homes)
{
    std::vector<bool> onDisk(idle.size());
    for (std::size_t chosen = 0; chosen < wanted; ++chosen) {
        std::size_t best = idle.size();
        for (std::size_t slot = 0; slot < idle.size(); ++slot)
            if (!onDisk[slot] && (best == idle.size() || idle[slot] > idle[best]))
                best = slot;
        onDisk[best] = true;
    }
    for (const bool isOnDisk : onDisk)
        homes.places.push_back(isOnDisk ? ~homes.onDisk++ : homes.onHost++);
}

} // namespace

std::int32_t BoundaryHomes::tileOf(int layer, int slot) const noexcept
{
    const std::size_t index = static_cast<std::size_t>(layer) * static_cast<std::size_t>(inFlight) +
                              static_cast<std::size_t>(slot);
    return index < places.size() && places[index] < 0 ? ~places[index] : -1;
}

std::int32_t BoundaryHomes::copyOf(int layer, int slot) const noexcept
{
    const std::size_t index = static_cast<std::size_t>(layer) * static_cast<std::size_t>(inFlight) +
                              static_cast<std::size_t>(slot);
    return index < places.size() && places[index] >= 0 ? places[index] : -1;
}

BoundaryHomes boundaryHomes(
    const Traversal& traversal, int microBatches, std::span<const double> shares, bool passesTwice)
{
    const int layers = static_cast<int>(shares.size());
    BoundaryHomes homes;
    homes.inFlight = microBatchesInFlight(traversal, layers, microBatches);
    const auto flying = static_cast<std::size_t>(homes.inFlight);
    const std::vector<std::int64_t> idle = idleTimes(
        traversal, layers, savedLayers(layers, passesTwice), microBatches, homes.inFlight);
    for (std::size_t layer = 0; layer < idle.size() / flying; ++layer) {
        const double wanted = std::round(shares[layer] * static_cast<double>(flying));
        placeLayer(std::span(idle).subspan(layer * flying, flying),
            std::min(flying, static_cast<std::size_t>(std::max(0.0, wanted))), homes);
    }
    homes.stages = std::min(kDiskStages, homes.onDisk);
    return homes;
}

} // namespace mr
