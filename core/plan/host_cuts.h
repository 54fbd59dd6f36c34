// Where the shares of a group cut its elements: the device's part, then the host's, of which the
// last ones may be late or have their state, weights and gradients on disk.
//
// Threads  Pure.
// Units    Elements from the beginning of the group.

#pragma once

#include "core/plan/policy.h"

#include <cstdint>

namespace mr {

struct HostCuts {
    std::int64_t hostFirst = 0;      // the host updates from here on
    std::int64_t lateFirst = 0;      // updates from here on may be late
    std::int64_t diskFirst = 0;      // state from here on is on disk
    std::int64_t weightsFirst = 0;   // and weights; not below diskFirst
    std::int64_t gradientsFirst = 0; // and gradients; not below diskFirst
    std::int64_t end = 0;            // end of the group
    bool behindBackward = false;     // the device updates it all; shares on disk are of all
};

// `lateShare` and the shares of `placement` are of the host's part; each takes its last elements.
HostCuts hostCuts(
    const GroupPlacement& placement, double lateShare, std::int64_t elements) noexcept;
HostCuts hostCuts(const GroupAnswers& answers, std::int64_t elements) noexcept;

// Elements of the tile that begins at `first`, `most` at most, and lies on one side of all cuts.
std::int64_t elementsUpToCut(
    const HostCuts& cuts, std::int64_t first, std::int64_t end, std::int64_t most) noexcept;
// Elements of the tile that begins at `first` of the range that ends at `end`, which lies on one
// side of the first late element.
std::int64_t hostTileElements(
    const HostCuts& cuts, std::int64_t first, std::int64_t end, std::int64_t tileElements) noexcept;

// A slot is a quarter of an upload's tile: 80 MiB of state where that one has 64 of weights.
inline constexpr std::int64_t kDiskTileShare = 4;
// Largest number of elements of a tile on disk, where uploads have tiles of `tileElements`.
std::int64_t diskTileElements(std::int64_t tileElements) noexcept;

} // namespace mr
