// RunMemory: the plan's bytes as tensors, looked up once so that a step only picks views.
//
// Where a group's state (master halves, moments) lives is a consequence of the policy: on the
// device where the device updates it, else on the host. readState and writeState hide that.
//
// Threads    Constant after create(); views may be copied anywhere. State copies: engine thread.
// Ownership  Borrows everything.
// Errors     Internal if the plan lacks an item that a view needs.
// Units      Elements and bytes as named.

#pragma once

#include "core/device/compact_state.h"
#include "core/model/block.h"
#include "core/model/layout.h"
#include "core/model/param_table.h"
#include "core/plan/plan.h"
#include "core/step/window_memory.h"
#include "core/tier/tier_store.h"

#include <millrace/status.h>

#include <array>
#include <optional>
#include <vector>

namespace mr {

// Of the values of a plane that exists.
DType typeOf(StateCodec codec, StatePart part) noexcept;

// One group. Null where the plan holds no such bytes.
struct GroupMemory {
    std::int64_t elements = 0;
    std::int64_t sentFirst = 0;       // the host gets gradients from this element on
    std::byte* weights = nullptr;     // device, c: what ops read; null: they come to a slot
    std::byte* accumulator = nullptr; // device, F32; blocks may share it (GradientHomes)
    // The finished gradient, on the device: of the elements before sentFirst, and of those from
    // there on, which blocks may share.
    std::byte* gradient = nullptr;
    std::byte* sentGradient = nullptr;
    std::byte* hostGradient = nullptr; // from sentFirst on
    bool stateOnDevice = false;
    DiskEnds diskEnds;
    std::array<std::byte*, kStateParts> state{}; // where stateOnDevice says
    // Of a block: where its weights stay, or in each of the slots they may come to.
    std::vector<BlockTensors> weightViews;
    BlockTensors gradientViews; // F32

    // Elements [first, first + count) of the finished gradient. Precondition: they lie on one side
    // of sentFirst.
    TensorView finished(DType type, std::int64_t first, std::int64_t count) const
    {
        std::byte* base = first < sentFirst ? gradient : sentGradient;
        const std::int64_t at = first < sentFirst ? first : first - sentFirst;
        return vectorView(base + static_cast<std::size_t>(at) * sizeOf(type), type, count);
    }
    // The copy of the finished gradient on the host, from `first` on.
    std::byte* gradientOnHost(DType type, std::int64_t first) const
    {
        return hostGradient + static_cast<std::size_t>(first - sentFirst) * sizeOf(type);
    }
    bool streams() const noexcept { return !weights; } // of training
};

// Of compact state whose parts begin at these places, which all exist.
CompactRange compactRange(
    const std::array<std::byte*, kStateParts>& at, std::int64_t count) noexcept;
// Elements [first, first + count) of a group whose state is compact and on the host. Precondition:
// `first` is a multiple of kCompactGroup.
CompactRange compactRange(
    const GroupMemory& group, std::int64_t first, std::int64_t count) noexcept;

// A tile of optimizer state that visits the device, by part. Null where the codec has no such plane
// and, in BF16, for High where no weights stream: those that stay are it. `gradient` is null there,
// too.
struct StateSlot {
    std::array<std::byte*, kStateParts> parts{};
    std::byte* gradient = nullptr;
};

class RunMemory
{
public:
    static Result<std::unique_ptr<RunMemory>> create(const TierStore& tiers,
        const ModelConfig& config, const ParamTable& table, const MicroShape& shape,
        std::int64_t microsInFlight, std::int64_t batchBuffers, bool recompute);

    const GroupMemory& group(GroupId id) const
    {
        return m_groups[static_cast<std::size_t>(id.value)];
    }
    std::int64_t groupCount() const noexcept { return static_cast<std::int64_t>(m_groups.size()); }
    // (rows, cols), c: as ops read it. Precondition: the group's weights stay on the device.
    TensorView weight(GroupId id, const WeightCut& slot) const;

    // The activation that layer `layer` hands on, for the micro-batch in `slot`; (T, H), c.
    TensorView boundary(std::int64_t slot, std::int64_t layer) const;
    TensorView streamGradient(std::int64_t slot) const;
    // Its copy on the host, where that is its home; and its tile of the store, where that is.
    TensorView hostBoundary(std::int64_t slot, std::int64_t layer) const;
    std::int32_t storedBoundary(std::int64_t slot, std::int64_t layer) const noexcept;
    // Weights as ops read them, of a task that names a slot; and its bytes.
    const BlockTensors& weightsOf(const Task& task) const;
    std::byte* weightBytes(const Task& task) const;
    const BlockActivations& activations(std::int64_t slot, std::int64_t block) const;
    // Its bytes; whether a training step keeps them on the host, of a layer, and where.
    std::span<std::byte> activationBytes(std::int64_t slot, std::int64_t block) const;
    bool keepsActivations(std::int64_t slot, std::int64_t layer) const noexcept;
    std::byte* hostActivations(std::int64_t slot, std::int64_t layer) const noexcept;

    // Where generation keeps the projections of one sequence for a block: (seqLen, Q), c. Of its
    // own where one was planned, else those that backward would read, else null (recomputation).
    TensorView keyValueCache(std::int64_t block) const;

    std::int64_t slotCount() const noexcept { return m_slots; } // micro-batches in flight
    bool recomputes() const noexcept { return m_recompute; }
    DType compute() const noexcept { return m_shape.compute; }
    DType gradientType() const noexcept { return m_shape.compute; }
    StateCodec stateCodec() const noexcept { return m_codec; }

    // What is on disk, and the places of host memory it passes through (Task::stage), which start
    // at a page.
    const DiskCuts& disk() const noexcept { return m_disk; }
    const DiskParts& diskParts() const noexcept { return m_diskParts; }
    std::span<std::byte> diskStage(int stage) const noexcept
    {
        return m_diskStages[static_cast<std::size_t>(stage)];
    }
    std::span<std::byte> diskStages() const noexcept { return m_allDiskStages; }
    // Of the tile, in this place: a region, and a plane at an element of it. Places of updates have
    // all regions, the others theirs.
    std::span<std::byte> diskRegion(int stage, std::int32_t tile, DiskRegion region) const noexcept;
    std::byte* diskPlane(
        int stage, std::int32_t tile, StatePart part, std::int64_t element) const noexcept;
    // Where the host finds a part of the state of an element: in memory, or in the place to which
    // its tile came from disk (below 0: to none). Precondition: the codec has the part.
    std::byte* hostState(
        GroupId id, StatePart part, std::int64_t element, int stage) const noexcept;
    // With windows: are the columns that the device owns never in the host's arrays? Compact ones
    // would round them, and those on disk would have to come and go for it.
    bool keepsColumnsApart() const noexcept
    {
        return m_codec == StateCodec::Compact || m_disk.isActive();
    }

    BlockScratch scratch;
    HeadScratch head;
    TensorView headProduct; // null data unless planned
    ModelConstants constants;
    ScalarViews scalars;
    ScalarViews hostScalars;
    TensorView secondAccumulator; // (V, H), F32, of a tied head; null otherwise
    HeadTensors headWeights;
    HeadTensors headGradients;
    TensorView embedding;         // (V, H), c
    TensorView embeddingGradient; // (V, H), F32
    std::vector<BatchViews> batches;
    std::vector<BatchViews>
        hostBatches; // one per micro-batch: the engine fills all before it enqueues
    std::size_t batchBytes = 0;
    std::span<std::byte> staging; // pinned
    std::vector<StateSlot> stateSlots;
    std::optional<WindowMemory> window; // of policies that split gradients by columns
    std::byte* uploadLanding = nullptr; // F32: both planes of a tile, to be joined

private:
    RunMemory() = default;
    Status bindGroups(const TierStore& tiers, const ModelConfig& config, const ParamTable& table);
    void bindGradient(const TierStore& tiers, GroupId id, GroupMemory& group) const;
    void bindState(const TierStore& tiers, GroupId id, GroupMemory& group) const;
    void bindEnds(const TierStore& tiers, const ModelConfig& config, const ParamTable& table);
    void bindStateSlots(const TierStore& tiers);
    void bindDisk(const TierStore& tiers);
    Status bindWork(const TierStore& tiers, const ModelConfig& config, const ParamTable& table);
    Status bindBatches(
        const TierStore& tiers, const ModelConfig& config, std::int64_t deviceBuffers);

    MicroShape m_shape;
    StateCodec m_codec = StateCodec::Plain;
    DiskCuts m_disk;
    DiskParts m_diskParts;
    BoundaryHomes m_boundaryHomes;
    std::int32_t m_firstBoundary = 0; // of what is stored
    std::span<std::byte> m_allDiskStages;
    std::vector<std::span<std::byte>> m_diskStages;
    std::int64_t m_hidden = 0;
    std::int64_t m_layers = 0; // blocks
    std::int64_t m_slots = 1;
    bool m_recompute = false;
    std::byte* m_boundaries = nullptr;
    std::byte* m_hostBoundaries = nullptr;
    std::vector<std::byte*> m_weightSlots;
    TensorView m_cache; // (blocks * seqLen, Q)
    std::size_t m_boundaryCount = 1;
    std::int64_t m_boundariesEach = 0; // of a micro-batch in flight: outputs, and the gradient
    std::vector<GroupMemory> m_groups;
    std::vector<BlockActivations> m_activations; // by slot, then block; with recompute in turns
    std::size_t activationIndex(std::int64_t slot, std::int64_t block) const;
    std::span<std::byte> m_allActivations;
    std::byte* m_hostActivations = nullptr;
    std::vector<std::int32_t> m_keptActivations; // MemoryPlan::keptActivations
    ActivationTurns m_activationTurns;
};

} // namespace mr
