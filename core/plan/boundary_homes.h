// BoundaryHomes: which activations between layers wait for backward on disk, and which on the host.
//
// Where boundaries are saved, each micro-batch in flight has one of every layer but the last two,
// whose outputs are still on the device. All are of one size, so of TERAIO's rule (benefit by cost)
// the time between save and load is left: what waits longest goes first. That is from the lowest
// layer up, a share of each layer's micro-batches (GroupPlacement::boundariesOnDisk), and in a
// layer those whose forward comes earlier and whose backward comes later.
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

// Layers whose output a step saves: all but the last two before the head.
constexpr int savedLayers(int layers) noexcept
{
    return layers > 3 ? layers - 3 : 0;
}

// `shares` are GroupPlacement::boundariesOnDisk, by group.
BoundaryHomes boundaryHomes(
    const Traversal& traversal, int microBatches, std::span<const double> shares);

} // namespace mr
