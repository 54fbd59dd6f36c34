// RunMemory: the plan's bytes as tensors, looked up once so that a step only picks views.
//
// Threads    Constant after create(); views may be copied anywhere.
// Ownership  Borrows everything.
// Errors     Internal if the plan lacks an item that a view needs.
// Units      Elements and bytes as named.

#pragma once

#include "core/model/block.h"
#include "core/model/block_input.h"
#include "core/model/input_table.h"
#include "core/model/layout.h"
#include "core/model/param_table.h"
#include "core/plan/plan.h"
#include "core/plan/recompute.h"
#include "core/step/activation_memory.h"
#include "core/step/boundary_memory.h"
#include "core/step/disk_places.h"
#include "core/step/frozen_pieces.h"
#include "core/step/group_memory.h"
#include "core/step/token_rows.h"
#include "core/step/window_memory.h"
#include "core/tier/tier_store.h"

#include <millrace/status.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace mr {

class RunMemory
{
public:
    static Result<std::unique_ptr<RunMemory>> create(const TierStore& tiers,
        const ModelConfig& config, const ParamTable& table, const MicroShape& shape,
        std::int64_t microsInFlight, std::int64_t batchBuffers, Recompute recompute);

    const GroupMemory& group(GroupId id) const
    {
        return m_groups[static_cast<std::size_t>(id.value)];
    }
    // Null where the block has none, or it is switched off.
    const BlockAdapter* adapterOf(GroupId id) const
    {
        return addsAdapter ? group(id).adapterOrNull() : nullptr;
    }
    std::int64_t groupCount() const noexcept { return static_cast<std::int64_t>(m_groups.size()); }
    // (rows, cols), c: as ops read it. Precondition: the group's weights stay on the device.
    TensorView weight(GroupId id, const WeightCut& slot) const;

    const BoundaryMemory& boundaries() const noexcept { return m_boundaries; }
    const ActivationMemory& activations() const noexcept { return m_activations; }
    // Tensors that layers of a micro-batch in flight hand each other beside the stream.
    const SharedViews& shared(std::int64_t slot) const noexcept
    {
        return m_shared[static_cast<std::size_t>(slot)];
    }
    const DiskPlaces& disk() const noexcept { return m_disk; }
    // Number of a piece of frozen weights among all that is stored: they come behind boundaries.
    std::int32_t storedPiece(std::int32_t piece) const noexcept { return m_firstPiece + piece; }

    // Weights as ops read them, for a task that names a slot; and the bytes that a copy of weights
    // is about.
    const BlockTensors& weightsOf(const Task& task) const;
    std::byte* weightBytes(const Task& task) const;
    // Weights in the compute type that a task behind backward reads or changes.
    std::byte* updatedWeights(const Task& task) const;
    // Copies of a layer's weights that are moved (core/step/forward_probes.h): `copy` is 0 or 1.
    std::byte* movedWeights(GroupId id, int copy) const noexcept;
    const BlockTensors& movedBlock(GroupId id, int copy) const;
    TensorView movedEmbedding(int copy) const;
    InputTensors movedInputs(int copy) const;
    HeadTensors movedHead(int copy) const;
    // The first element of its group in the weights that a task finds on the device: of a tile of
    // embedding or head the first of its range.
    std::int64_t weightsFirst(const Task& task) const noexcept
    {
        return m_vocabulary.any() && isEnd(task.group) ? task.firstElement : 0;
    }
    // Tiles of the head's matrix, where the home of embedding and head is the host.
    const VocabularyTiles& vocabulary() const noexcept { return m_vocabulary; }
    // Rows [first, first + n) of it, in the slot of the task that is about the tile.
    HeadTile headTile(const Task& task, const VocabularyTile& tile) const;
    // The final norm, in the slot of a task about the first tile.
    TensorView headNorm(const Task& task) const;
    // Scratch of the head for a micro-batch in flight.
    HeadScratch headOf(std::int64_t slot) const;
    // The slots of such a task.
    VisitSlots slotsOf(const Task& task) const noexcept
    {
        return VisitSlots::of(task, m_stateSlots);
    }

    // Generation keeps there what a block remembers of one sequence (layoutCache()). The cache
    // where one was planned, else the projections that backward would read, else null
    // (recomputation).
    BlockCache cacheOf(std::int64_t block) const;
    bool hasCache() const { return cacheOf(0).isThere(); }
    // One memory, cut for this block.
    const BlockScratch& scratchOf(std::int64_t block) const noexcept
    {
        return m_scratch[static_cast<std::size_t>(block)];
    }

    std::int64_t slotCount() const noexcept { return m_slots; } // micro-batches in flight
    Recompute recompute() const noexcept { return m_recompute; }
    DType compute() const noexcept { return m_shape.compute; }
    double dropout() const noexcept { return m_shape.dropout; } // of adapters, in training
    DType gradientType() const noexcept
    {
        return isLight(m_optimizer) ? DType::F32 : m_shape.compute;
    }
    Optimizer optimizer() const noexcept { return m_optimizer; }
    StateCodec stateCodec() const noexcept { return m_codec; }

    // Where the host finds a part of the state of an element: in memory, or in the place to which
    // its tile came from disk (below 0: to none). Precondition: the codec has the part.
    std::byte* hostState(
        GroupId id, StatePart part, std::int64_t element, int stage) const noexcept;
    // With windows: are the columns that the device owns never in the host's arrays? Compact
    // arrays would round them, and arrays on disk would have to come and go for it.
    bool keepsColumnsApart() const noexcept
    {
        return m_codec == StateCodec::Compact || m_disk.cuts().isActive();
    }

    HeadScratch head;
    TensorView headProduct;    // null data unless planned
    AddedApart apart;          // lent by the run; nothing in most
    InputTensors inputWeights; // of the inputs of blocks, and their gradients; null without such
    InputTensors inputGradients;
    InputScratch inputScratch;
    std::unique_ptr<InputTable> inputTable; // null unless rows come from the model's file
    FrozenPieces frozenPieces;              // of weights on disk
    bool addsAdapter = true;                // false: blocks answer as if they had none
    ModelConstants constants;
    ScalarViews scalars;
    ScalarViews hostScalars;
    // F32, of a tied head: (V, H), or (n, H) where n rows of it are trained; null otherwise.
    TensorView secondAccumulator;
    HeadTensors headWeights;
    HeadTensors headGradients;
    TensorView embedding;         // (V, H), c
    TensorView embeddingGradient; // (V, H), of the group's accumulator
    TokenRows tokenRows;          // in place of the embedding's own; none in most runs
    std::vector<BatchViews> batches;
    std::vector<BatchViews> hostBatches; // one per micro-batch: all are filled before a step
    std::size_t batchBytes = 0;
    std::span<std::byte> staging; // pinned
    std::vector<StateSlot> stateSlots;
    std::byte* updateScratch = nullptr; // device: of light updates (LightLayout)
    std::optional<WindowMemory> window; // for policies that split gradients by columns
    std::byte* uploadLanding = nullptr; // F32: both planes of a tile, to be joined
    std::byte* packedLanding = nullptr; // device: packed weights of a group, on their way to a slot

private:
    RunMemory() = default;
    Status bindGroups(const TierStore& tiers, const ModelConfig& config, const ParamTable& table);
    void bindEnds(const TierStore& tiers, const ModelConfig& config, const ParamTable& table);
    void bindHead(const ModelConfig& config, bool trains, std::byte* bytes);
    void bindShared(const TierStore& tiers, const ModelConfig& config);
    void bindMoved(const TierStore& tiers, const ModelConfig& config, const ParamTable& table);
    Status bindWork(const TierStore& tiers, const ModelConfig& config, const ParamTable& table);
    Status bindBatches(
        const TierStore& tiers, const ModelConfig& config, std::int64_t deviceBuffers);

    bool isEnd(GroupId id) const noexcept { return id.value == 0 || id.value + 1 == groupCount(); }

    MicroShape m_shape;
    VocabularyTiles m_vocabulary;
    std::vector<HeadRows> m_headRows; // by micro-batch in flight, where the matrix comes by tiles
    StateCodec m_codec = StateCodec::Plain;
    Optimizer m_optimizer = Optimizer::AdamW;
    std::int64_t m_slots = 1;
    int m_stateSlots = 0;
    Recompute m_recompute = Recompute::None;
    std::vector<SharedViews> m_shared; // by micro-batch in flight
    BoundaryMemory m_boundaries;
    ActivationMemory m_activations;
    DiskPlaces m_disk;
    std::int32_t m_firstPiece = 0;
    std::vector<std::byte*> m_weightSlots;
    struct Moved {
        std::byte* shared = nullptr;      // by the layers that have no place of their own
        std::byte* embedding = nullptr;   // of a tied head
        std::vector<BlockTensors> blocks; // by group
        TensorView matrix;                // of the embedding
        InputTensors inputs;
        HeadTensors head;
    };
    std::vector<Moved> m_moved;          // by copy
    std::vector<BlockCache> m_cache;     // by block: layoutCache()
    std::vector<BlockScratch> m_scratch; // by block
    std::vector<GroupMemory> m_groups;
};

} // namespace mr
