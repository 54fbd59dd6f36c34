// MemoryPlan: every byte a run will hold, by tier, kind and group, before anything is allocated.
//
// The engine allocates exactly these items and nothing else, so planned peak == measured peak by
// construction, and a test compares them. Pure.
//
// Device, with n elements of a group and c = 2 (BF16) or 4 (F32) bytes of the compute type:
//   Weights       c n, all groups while weights' home is the device
//   FrozenWeights c for each element that no step changes, here or on the pinned host, and of a
//   share on disk, which comes through stages. Packed ones (GroupShape::packedBytes) come to a slot
//   from any home, from the others than this by PackedLanding, which has the bytes of the largest
//   group
//   HighPlane     2 n, F32 only, where the device updates the group (BF16: Weights is that plane)
//   LowPlane      2 n, FirstMoments and SecondMoments 4 n each (apart, so that the host can skew
//                 them: arrays exactly 2^k apart alias): where the device updates the group.
//                 Compact state (state_codec.h), there and on the host: HighPlane 2 n, LowPlane
//                 1 n, either moment 1 n and behind it 4 bytes of scale for every 32 elements
//   Accumulators  4 n (+ the tied head's second one), or c n where one micro-batch and one product
//                 make the whole gradient; of blocks that take turns (GradientHomes) as many of the
//                 largest as there are slots, for the run
//   Gradients     BF16 only, and only where sums are apart from finished gradients
//                 (MemoryPlan::sumIsFinished): 2 n of embedding and head and of the device's part
//                 of a block; slots for the rest, for the run
//   StateSlots    for state that visits the device: kStateSlots tiles of 10 (BF16), 12 (F32) or
//                 3.25 (compact) bytes per element; 14, 16 or 7.25 where some of it belongs to
//                 weights that stream: the high half and the gradient come, too
//   Light optimizers (optimizer.h): Accumulators 4 n, no Gradients; Averages, 4 bytes a row and a
//   column or what LightLayout keeps besides, and UpdateScratch, of the group that needs most.
//   StateSlots have room for all of a block with weights that stream: the low plane (F32: both). In
//   BF16 weights that stay have no HighPlane on the host
//   With windows (columns.h; n' dense and n" packed elements of a group):
//   UrgentState 12 n', UrgentGradients c n', UrgentSums 4 n' (and of the run, WindowScalars, where
//   a window has a norm of its own), UrgentScratch (F32) 4 of the largest n', ColumnEnergies 8 and
//   ColumnLists 4 bytes a column, PackedGradients c n" of embedding and head and kPackedSlots of
//   the largest block, UploadSlots kUploadSlots of the largest tile. Where windows are summed on
//   the device WindowSums 4 n", and PackedGradients c n" of every group, because a step that is not
//   finite is known only after all of them
//   UploadLanding F32 only: one tile of 4 bytes, where both planes land to be joined
//   WeightSlots   OffloadPolicy::buffers times c n of the largest block with weights that stream:
//   their home is the host, and the block has no Weights (or FrozenWeights) of its own
//   Boundaries (c of every layer's output and of the stream's gradient, for each micro-batch in
//   flight; three in all where their home is the host, which then has all but the last two, or
//   where inputs of blocks wait in codes; twice two without backward, with MovedCopies of the
//   largest layer's weights), InputCodes (of every block's input, or two in turn),
//   Activations (of one block where backward makes them again, of two where the host keeps some,
//    which then has those), Workspace, Head, Batches (two micro-batches), Constants, Scalars
// Pinned host, for groups the host updates: HighPlane 2 n, LowPlane 2 n, FirstMoments and
// SecondMoments 4 n each (also for state that visits the device), Gradients c n of the host's part
// (where weights stream: of all); Batches (every micro-batch of the step), Scalars (the step's
// results). With `resident` the host holds no state: checkpoints pass through one staging tile
// (Staging). Where state is on disk (disk_cuts.h) LowPlane and moments end where that begins; where
// weights are, HighPlane (in F32 LowPlane, too), and where gradients are, Gradients (an update that
// follows its gradient at once gets it in its slot, and neither tier has room for it).
// DiskSlots are the places of memory they pass through, with a page to align them, and Boundaries
// are those of a home on the host (boundary_homes.h). Disk: DiskState, DiskWeights, DiskGradients
// and DiskBoundaries, tiles in whole pages, and of the run the page in front of them.
// With windows:
// WindowSums, banks of 4 n" (c n" where a window comes as one gradient, which then is sent there),
// Gradients c n" for gradients that have landed and are not yet summed, and WindowScalars: the
// window's norm, 4 bytes for every 1,024 elements of n".

#pragma once

#include "core/base/ids.h"
#include "core/plan/boundary_homes.h"
#include "core/plan/columns.h"
#include "core/plan/disk_cuts.h"
#include "core/plan/model_shape.h"
#include "core/plan/policy.h"
#include "core/plan/state_codec.h"
#include "core/plan/vocabulary_tiles.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mr {

enum class MemoryUse : std::uint8_t {
    Weights,
    HighPlane,
    LowPlane,
    FirstMoments,
    SecondMoments,
    Accumulators,
    SecondAccumulator,
    Gradients,
    Boundaries,
    Activations,
    Workspace,
    Head,
    HeadProduct,
    Batches,
    Constants,
    Scalars,
    Staging,
    KeyValueCache, // generation only
    StateSlots,
    UploadLanding,
    UrgentState,
    UrgentGradients,
    UrgentSums,
    UrgentScratch,
    ColumnEnergies,
    ColumnLists,
    PackedGradients,
    UploadSlots,
    WindowSums,
    WindowScalars,
    WeightSlots,
    DiskSlots,
    DiskState,
    DiskWeights,
    DiskGradients,
    DiskBoundaries,
    FrozenWeights,
    PackedLanding,
    Averages,
    UpdateScratch,
    InputCodes,
    MovedCopies,
    Shared,
};

std::string_view name(MemoryUse use) noexcept; // "weights", "low plane", ...

struct MemoryItem {
    Tier tier{};
    MemoryUse use{};
    GroupId group; // value -1: of the run
    std::size_t bytes = 0;
};

// State, weights and gradients are in memory up to these elements; the rest is on disk.
struct DiskEnds {
    std::int64_t state = 0;
    std::int64_t weights = 0;
    std::int64_t gradients = 0;

    constexpr std::int64_t of(DiskRegion region) const noexcept
    {
        return region == DiskRegion::State     ? state
               : region == DiskRegion::Weights ? weights
                                               : gradients;
    }
};

struct MemoryPlan {
    std::vector<MemoryItem> items; // none of 0 bytes; by tier, use, group
    // Cuts of the items, for code that makes views of them.
    GradientHomes gradients;
    std::vector<std::size_t> sumBytes;   // by group: of an element of its sum on the device
    std::vector<std::int64_t> hostFirst; // by group: the host updates from this element on
    std::vector<std::int64_t> sentFirst; // by group: the host gets gradients from this element on
    std::int64_t stateTileElements = 0;  // in a state slot; 0: there are none
    WindowLayout window;
    bool visitsStream = false;      // state slots have a high half and a gradient
    std::vector<DiskEnds> diskEnds; // by group
    DiskCuts disk;
    DiskParts diskParts;
    std::size_t diskSlotBytes = 0; // one place each: for updates, weights, gradients, boundaries
    std::size_t weightStageBytes = 0;
    std::size_t gradientStageBytes = 0;
    std::size_t boundaryStageBytes = 0;
    int weightSlots = 0;          // for weights that stream
    bool savesBoundaries = false; // their home is the host, or the disk
    BoundaryHomes boundaries;     // in a step
    ActivationTurns activations;  // where backward makes them again
    // By group, of a step: how many copies of a block's activations the host keeps.
    std::vector<std::int32_t> keptActivations;
    VocabularyTiles vocabulary; // of embedding and head, where their home is the host
    StateCodec stateCodec = StateCodec::Plain;
    Optimizer optimizer = Optimizer::AdamW;
    int stateSlots = 0;               // where state visits the device
    std::size_t gradientBytes = 0;    // of an element of a finished gradient
    std::vector<bool> statesOnDevice; // by group: the home of state is the device

    // Does the sum of a group's micro-batches become its finished gradient where it is?
    bool sumIsFinished(std::size_t group) const noexcept
    {
        const bool isBlock = group > 0 && group + 1 < sumBytes.size();
        return sumBytes[group] == gradientBytes && !(isBlock && gradients.finishedSlots > 0);
    }
    bool usesDisk() const noexcept { return usesScratch() || !disk.frozen.empty(); }
    // Does it write to disk?
    bool usesScratch() const noexcept { return disk.isActive() || boundaries.onDisk > 0; }
    // Bytes of scratch files: frozen weights lie in others.
    std::size_t scratchBytes() const noexcept
    {
        return bytes(Tier::Disk) - bytes(Tier::Disk, MemoryUse::FrozenWeights);
    }
    int diskStages() const noexcept { return disk.stages() + boundaries.stages; }
    // Number of the first boundary on disk: boundaries come behind all regions of tiles
    // (DiskCuts::stored).
    std::int32_t firstBoundary() const noexcept;
    std::int32_t firstFrozenPiece() const noexcept { return firstBoundary() + boundaries.onDisk; }
    // Where Task::stage begins in DiskSlots, behind its alignment.
    std::size_t diskStage(int stage) const noexcept;
    std::size_t bytes(Tier tier) const noexcept;
    std::size_t bytes(Tier tier, MemoryUse use) const noexcept;
};

// Checkpoints, evaluation results and loading pass through this much pinned memory.
inline constexpr std::size_t kStagingBytes = std::size_t{8} << 20;

// Optimizer state that visits the device comes in tiles: one being fetched, one in use, one on its
// way home.
inline constexpr int kStateSlots = 3;
// Such a tile is a quarter of an upload's: 80 MiB in BF16 where that one has 64.
inline constexpr std::int64_t kStateTileShare = 4;

// `spec.step` is ignored. Homes and shares are those `policy` gives for `last`. InvalidArgument:
// compact state in F32, where weights are the whole master.
Result<MemoryPlan> planMemory(const StepSpec& spec, const ModelShape& shape, const Budget& budget,
    const Feedback& last, const OffloadPolicy& policy);

// Weights, activations and batches only: evaluation and generation without training.
MemoryPlan planInferenceMemory(const StepSpec& spec, const ModelShape& shape);

} // namespace mr
