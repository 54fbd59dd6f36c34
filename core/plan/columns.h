// How a gradient is split by columns, and the layout that a window of steps needs for it.
//
// A column of a 2-D weight (rows, cols) belongs to one input channel. Its owner, for all rows, is
// the device (urgent: updated in every step) or the host (complement: updated once per window).
// How many columns are urgent follows from the policy and never changes; which ones is data, kept
// by the engine. Two dense layouts follow, slot after slot, rows by rows:
//   packed   the complement of a group, (rows, cols - urgent) per slot, without gaps: crosses the
//            link and is summed by the host
//   dense    the urgent part, (rows, urgent) per slot, each slot at a multiple of kDenseAlign: the
//            device keeps its master and moments
// A 1-D weight counts as one row and is urgent or complement as a whole.
//
// Source   ZenFlow (arXiv 2505.12242), sections of the reference on selection and windows.
// Threads  Pure.
// Units    Elements.

#pragma once

#include "core/plan/disk_cuts.h"
#include "core/plan/model_shape.h"
#include "core/plan/policy.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mr {

inline constexpr std::int64_t kDenseAlign = 64;

struct WeightCut {
    std::int64_t first = 0; // element in the group
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t urgent = 0; // columns
    std::int64_t packedFirst = 0;
    std::int64_t denseFirst = 0;
    std::int64_t listFirst = 0; // its columns begin here in the group's lists

    std::int64_t complement() const noexcept { return cols - urgent; } // columns
    std::int64_t packedCount() const noexcept { return rows * complement(); }
    std::int64_t denseCount() const noexcept { return rows * urgent; }
    bool isMovable() const noexcept { return urgent > 0 && urgent < cols; }
};

struct GroupCut {
    std::vector<WeightCut> weights;
    std::int64_t packed = 0;
    std::int64_t dense = 0;   // with the gaps of kDenseAlign
    std::int64_t columns = 0; // in all weights
    std::int64_t widest = 0;  // urgent columns of one weight, at most
    // The host's state of elements from here on is on disk. Where a tile begins, or the end.
    std::int64_t diskFirst = 0;
};

// The host's part of whole rows of one slot: the range of one host update and one upload. With
// compact state the rows end where a group of 32 elements does.
struct ComplementTile {
    GroupId group;
    std::int32_t slot = 0;
    std::int64_t firstElement = 0; // where its first row begins, over all columns
    std::int64_t elementCount = 0;
    std::int64_t packedFirst = 0;
    std::int64_t packedCount = 0;
};

// Uploads of one window that may be on their way at the same time.
inline constexpr int kUploadSlots = 3;
// The norm of a window's urgent part: StepScalars, aligned like the blocks behind it.
inline constexpr std::size_t kWindowScalarBytes = 64;
inline constexpr std::size_t kSentWindowBytes = 16; // the part SendScalars copies
// Blocks take turns in so many packed gradients.
inline constexpr int kPackedSlots = 2;

struct WindowLayout {
    std::vector<GroupCut> groups; // empty: the policy has no windows
    // In the order the host updates them: groups descend, elements of a group ascend.
    std::vector<ComplementTile> tiles;
    int steps = 1;                   // in a window, once the run is warm
    int banks = 1;                   // sets of sums: 2 where the host works beside the next window
    bool direct = false;             // one gradient per window, sent to where the host reads it
    bool onDevice = false;           // windows of several steps are summed there
    bool hasNorm = false;            // the norm of a window is not that of a step
    std::int64_t uploadElements = 0; // in the largest tile, packed
    ColumnEnergy columnEnergy = ColumnEnergy::Squares;
    HostClock hostClock = HostClock::Steps;

    // Increment of the host's AdamW count by an update of so many steps.
    int stride(int windowSteps) const noexcept
    {
        return hostClock == HostClock::Steps ? windowSteps : 1;
    }
    bool isActive() const noexcept { return !groups.empty(); }
    // Does a step add its gradient to a sum on the device, if its window has so many steps?
    bool sumsOnDevice(int windowSteps) const noexcept { return onDevice && windowSteps > 1; }
    // Does the packed gradient use a slot in turn? Not where packed gradients wait for the norm of
    // their step.
    bool sharesPacked(std::size_t group) const noexcept
    {
        return !onDevice && group > 0 && group + 1 < groups.size() && groups.size() > 3;
    }
};

GroupCut cutByColumns(const GroupShape& shape, const GradientSplit& split);

// The layout a policy has for the whole run. Not active unless its rule or its split asks for
// windows, delay or urgent columns. The share on disk comes from the placement, which for such a
// policy ignores budget and rates.
WindowLayout windowLayout(const ModelShape& shape, const OffloadPolicy& policy, double clipNorm);

// Index of the tile in the layout that begins at this element; nothing if there is none.
std::optional<std::size_t> findTile(
    const WindowLayout& layout, GroupId group, std::int64_t firstElement) noexcept;
// The tile that findTile() finds. Precondition: there is one.
const ComplementTile& tileAt(const WindowLayout& layout, GroupId group, std::int64_t firstElement);

// Tiles of the layout with state on disk. Each includes the elements up to the next one: gaps, and
// weights of which the host updates nothing.
DiskCuts diskCuts(const WindowLayout& layout, const ModelShape& shape);

// Bytes for the urgent gradients of a group. Between steps they must also hold a list of a weight's
// urgent columns and one row of their state.
std::size_t urgentGradientBytes(const GroupCut& cut, std::size_t computeBytes) noexcept;

// Elements of the complement among `count` from `first`, which are whole rows. Allocates nothing.
std::int64_t complementCount(const GroupShape& shape, const GroupAnswers& answers,
    std::int64_t first, std::int64_t count) noexcept;

} // namespace mr
