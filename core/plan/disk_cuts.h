// DiskCuts: which state lives on disk, in which tiles, and how a tile is laid out.
//
// Of a group the host updates, its share from `first` on has its moments on disk and, in BF16, its
// low half; the planes that weights are fetched from stay in host memory. Tiles are what host
// updates are cut into anyway, so each is read, updated and written as a whole, once a step: they
// never cross the first late element.
//
// Threads  Pure.
// Units    Elements of a group; bytes.

#pragma once

#include "core/base/ids.h"
#include "core/plan/model_shape.h"
#include "core/plan/policy.h"
#include "core/plan/state_codec.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

struct DiskRange {
    GroupId group;
    std::int64_t first = 0;
    std::int64_t count = 0;
};

struct DiskCuts {
    std::vector<DiskRange> tiles;  // by group, then first element
    std::int64_t tileElements = 0; // of the largest; 0: nothing is on disk
    int slots = 0;                 // of host memory that tiles pass through

    bool isActive() const noexcept { return !tiles.empty(); }
    // Index of the tile that has this element; -1: it is not on disk.
    std::int32_t tileOf(GroupId group, std::int64_t element) const noexcept;
};

// Where the host's part of a group is cut.
struct HostCuts {
    std::int64_t hostFirst = 0; // the host updates from here on
    std::int64_t lateFirst = 0; // of these, what may wait from here on
    std::int64_t diskFirst = 0; // of these, what is on disk from here on
    std::int64_t end = 0;       // of the group
};

HostCuts hostCuts(
    const GroupPlacement& placement, double lateShare, std::int64_t elements) noexcept;

// Elements of the tile that begins at `first` of the range that ends at `end`, which lies on one
// side of the first late element.
std::int64_t hostTileElements(
    const HostCuts& cuts, std::int64_t first, std::int64_t end, std::int64_t tileElements) noexcept;

// By group.
DiskCuts diskCuts(std::span<const HostCuts> groups, std::int64_t tileElements);
DiskCuts diskCuts(const ModelShape& shape, std::span<const GroupPlacement> placements,
    const OffloadPolicy& policy, const Feedback& rates);

// Slots and tiles begin at multiples of this.
inline constexpr std::size_t kDiskAlign = 4096;

// What of state a tile has. In F32 both halves of the master are what weights are fetched from.
struct DiskParts {
    StateCodec codec = StateCodec::Plain;
    bool low = true;

    bool has(StatePart part) const noexcept;
};

// Of a tile of `count` elements on disk and in its slot: planes one after the other in the order of
// kPartsOfTile. Planes of a MiB or more are skewed by a page, because arrays that begin 2^k bytes
// apart alias in the cache.
std::size_t diskTileBytes(const DiskParts& parts, std::int64_t count) noexcept;
// Precondition: the tile has the plane.
std::size_t diskPlaneOffset(const DiskParts& parts, StatePart part, std::int64_t count) noexcept;
// To whole pages, which is what moves.
constexpr std::size_t diskPages(std::size_t bytes) noexcept
{
    return (bytes + kDiskAlign - 1) / kDiskAlign * kDiskAlign;
}

// State on disk passes through this many slots of host memory: one is read, one is updated, one is
// written, and one is ready before it is needed.
inline constexpr int kDiskSlots = 4;
// A slot is a quarter of an upload's tile: 80 MiB of state where that one has 64 of weights.
inline constexpr std::int64_t kDiskTileShare = 4;
} // namespace mr
