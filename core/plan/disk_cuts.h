// DiskCuts: the data that lives on disk, its tiles, and the layout of a tile.
//
// Three elements cut the host's part of a group (HostCuts). From diskFirst on, state is on disk:
// moments and, in BF16, the low half. From weightsFirst on so are the planes that weights are
// fetched from, and from gradientsFirst on the finished gradient. A tile on disk is a tile of the
// host's update, so its state is read, updated and written as a whole, once a step: it crosses
// neither these cuts nor the first late element. Policies with windows have state alone on disk, in
// tiles of their own (columns.h).
//
// Where updates follow their gradients, the device sends its gradient and weights to an update that
// is not late (DiskSends): such a gradient is never on disk.
//
// Frozen weights have tiles of their own: the last share of a group's, in its place in the model's
// own files or in one that runs share. They are read for every use and never written.
//
// Threads  Pure.
// Units    Elements of a group; bytes.

#pragma once

#include "core/base/ids.h"
#include "core/plan/host_cuts.h"
#include "core/plan/model_shape.h"
#include "core/plan/policy.h"
#include "core/plan/state_codec.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

// Part of a tile that lies together on disk because it moves together.
enum class DiskRegion : std::uint8_t {
    State,    // for an update, and back
    Weights,  // for an update, and back, and for every use of the layer
    Gradient, // there after backward, for an update
};
inline constexpr std::size_t kDiskRegions = 3;

// Data that the device sends to the slot of an update in the step of its gradient, in place of a
// read from disk.
struct DiskSends {
    bool gradients = false; // StepPlan::normByGroup
    bool weights = false;   // and BF16; in F32 the host has two planes, the device their sum

    friend bool operator==(const DiskSends&, const DiskSends&) = default;
};
DiskSends sendsOf(const OffloadPolicy& policy, const StepSpec& spec, bool byColumns) noexcept;
DiskSends sendsOf(const StepPlan& plan) noexcept;

struct DiskRange {
    GroupId group;
    std::int64_t first = 0;
    std::int64_t count = 0;
    // Number of the tile among those with weights, or with a gradient, on disk; -1: it has none
    // there.
    std::int32_t weights = -1;
    std::int32_t gradient = -1;
    // Does its update get its gradient from the device, and its weights?
    bool sendsGradient = false;
    bool sendsWeights = false;

    // Is it on disk? Does an update read it from there? Is there room for it in the update's slot?
    bool has(DiskRegion region) const noexcept;
    bool isRead(DiskRegion region) const noexcept;
    bool isInSlot(DiskRegion region) const noexcept;
};

// Counts frozen elements.
struct FrozenTile {
    GroupId group;
    std::int64_t first = 0;
    std::int64_t count = 0;
};

struct DiskCuts {
    std::vector<DiskRange> tiles;   // by group, then first element
    std::vector<FrozenTile> frozen; // likewise
    std::int64_t tileElements = 0;  // in the largest tile; 0: nothing is on disk
    std::int32_t weightTiles = 0;
    std::int32_t gradientTiles = 0;
    // Places of host memory (Task::stage) for tiles in an update, for weights on their way to the
    // device, and for gradients on theirs to the disk.
    int slots = 0;
    int weightStages = 0;
    int gradientStages = 0;

    bool isActive() const noexcept { return !tiles.empty(); } // state is on disk
    int stages() const noexcept { return slots + weightStages + gradientStages; }
    // Index of the tile that has this element; -1: it is not on disk.
    std::int32_t tileOf(GroupId group, std::int64_t element) const noexcept;
    // Index of the tile of frozen weights that has this element; -1: it is not on disk.
    std::int32_t frozenTileOf(GroupId group, std::int64_t element) const noexcept;
    // Number of a region of a tile among all on disk: states come first, then weights, then
    // gradients. Precondition: the tile has the region.
    std::int32_t stored(std::int32_t tile, DiskRegion region) const noexcept;
};

// The tile of these elements, which lie on one side of all cuts. `weights` and `gradient` are 0
// where those are on disk.
DiskRange diskRangeAt(
    const HostCuts& cuts, std::int64_t first, std::int64_t count, DiskSends sends) noexcept;
// By group.
DiskCuts diskCuts(
    std::span<const HostCuts> groups, std::int64_t tileElements, DiskSends sends = {});
DiskCuts diskCuts(const ModelShape& shape, std::span<const GroupPlacement> placements,
    const OffloadPolicy& policy, const Feedback& rates, DiskSends sends = {});

// The first frozen element that is on disk, where `share` of a group's are.
std::int64_t firstFrozenOnDisk(double share, std::int64_t frozenElements) noexcept;
// Adds the tiles of a group's frozen weights. Groups ascend.
void addFrozenTiles(DiskCuts& cuts, GroupId group, double share, const GroupShape& shape,
    std::int64_t tileElements);
// Bytes of a stage that a tile of frozen weights comes to. Each of its tensors begins and ends
// somewhere in a page of a file.
std::size_t frozenStageBytes(
    const FrozenTile& tile, const GroupShape& shape, std::size_t each) noexcept;

// Slots and tiles begin at multiples of this.
inline constexpr std::size_t kDiskAlign = 4096;

// Planes of the regions. In F32 weights are fetched from both halves of the master, and gradients
// have 4 bytes.
struct DiskParts {
    StateCodec codec = StateCodec::Plain;
    bool low = true; // is state: BF16

    bool has(StatePart part) const noexcept { return planeOf(codec, part).exists(); }
    DiskRegion regionOf(StatePart part) const noexcept;
};

// Bytes of a region of `count` elements, on disk and in memory: planes one after the other in the
// order of kPartsOfTile. Planes of a MiB or more are skewed by a page, because arrays that begin
// 2^k bytes apart alias in the cache. State has one byte at least, so that every tile has a place:
// a light optimizer may keep nothing beside its weights.
std::size_t diskRegionBytes(const DiskParts& parts, DiskRegion region, std::int64_t count) noexcept;
// Bytes from the beginning of its region. Precondition: the codec has the plane.
std::size_t diskPlaneOffset(const DiskParts& parts, StatePart part, std::int64_t count) noexcept;

// Bytes of all regions of a tile in the slot of its update: one after the other, in whole pages.
std::size_t diskSlotBytes(const DiskParts& parts, const DiskRange& tile) noexcept;
std::size_t diskRegionOffset(
    const DiskParts& parts, const DiskRange& tile, DiskRegion region) noexcept;

// Rounds up to whole pages, the unit of every move.
constexpr std::size_t diskPages(std::size_t bytes) noexcept
{
    return (bytes + kDiskAlign - 1) / kDiskAlign * kDiskAlign;
}

// State on disk passes through this many slots of host memory: one is read, one is updated, one is
// written, and one is ready before it is needed.
inline constexpr int kDiskSlots = 4;
// Weights and gradients pass through as many smaller ones: those a disk has in flight, and one that
// moves between host and device.
inline constexpr int kDiskStages = 4;

} // namespace mr
