// BoundaryHomes: which activations between layers wait for backward on disk, and which on the host.
//
// Where boundaries are saved, each micro-batch in flight has one for every layer but the last two;
// their outputs are still on the device, unless backward comes twice. All boundaries have one size,
// so TERAIO's rule (benefit by cost) leaves only the time between save and load: the boundary that
// waits longest goes first. Layers go from the lowest up, each with a share of its micro-batches
// (GroupPlacement::boundariesOnDisk): those with the earlier forward and the later backward.
//
// Threads  Pure.
// Source   TERAIO, arXiv 2506.06472, the planning of tensors by their idle time.

#pragma once

#include "core/plan/policy.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

struct BoundaryHomes {
    int inFlight = 1;
    // By layer, then micro-batch in flight: the number of its copy on the host, or of its tile on
    // disk, inverted.
    std::vector<std::int32_t> places;
    std::int32_t onHost = 0;
    std::int32_t onDisk = 0;
    // Places of host memory between device and disk (Task::stage).
    int stages = 0;

    // -1: it has none on disk, or on the host.
    std::int32_t tileOf(int layer, int slot) const noexcept;
    std::int32_t copyOf(int layer, int slot) const noexcept;
};

// Number of layers that save their output in a step: all but the last two before the head, and
// where backward comes twice those, too.
constexpr int savedLayers(int layers, bool passesTwice) noexcept
{
    const int kept = passesTwice ? 1 : 3;
    return layers > kept ? layers - kept : 0;
}

// `shares` are GroupPlacement::boundariesOnDisk, by group.
BoundaryHomes boundaryHomes(const Traversal& traversal, int microBatches,
    std::span<const double> shares, bool passesTwice = false);

} // namespace mr
