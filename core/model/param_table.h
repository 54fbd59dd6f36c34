// ParamTable: the one place that knows where each parameter lies.
//
// Parameters are kept in groups, one per layer of the traversal: group 0 the embedding, 1 to L
// the transformer blocks, L + 1 the head (final norm; lm_head if it is not tied). A group is one
// flat range of elements, cut into slots that ops read whole: q, k and v are one matrix, gate
// and up another, so that each is one product. A published tensor ("model.layers.0.self_attn.
// k_proj.weight") is a range of rows of a slot, or, where files hold fused projections, all of it.
//
// A tied head has no slot of its own: it reads the embedding and adds to a second accumulator.
//
// Threads  A value; not changed once built.
// Units    Elements. Slots begin at multiples of kSlotAlign elements, so a vector load from any
//          slot is aligned; the gaps are zero and stay zero.

#pragma once

#include "core/base/ids.h"
#include "core/model/carried_tensors.h"
#include "core/model/model_config.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mr {

inline constexpr std::int64_t kSlotAlign = 64;

enum class SlotKind : std::uint8_t {
    Embedding,       // (V, H)
    InputProjection, // (layers P, H): of inputs of blocks, and so the next one
    InputsNorm,      // (P)
    AttnNorm,        // (H)
    Qkv,             // (BlockKind::projectedColumns(), H)
    QkvBias,         // (Q)
    QueryNorm,  // (headDim), shared by the heads, or of a whole row; absent unless the block has it
    KeyNorm,    // likewise
    Conv,       // (channels * taps): of a block with a state, and so the next three
    LogDecay,   // (valueHeads)
    TimeBias,   // (valueHeads)
    DeltaNorm,  // (valueDim)
    InputGate,  // (P, H): of a block with an input of its own, and so the next three
    InputOut,   // (H, P)
    InputNorm,  // (H)
    InputTable, // (rows, P): its columns of the inputs' table, where that is trained
    AttnOut,    // (H, BlockKind::mixedColumns())
    AttnOutBias,
    AttnBranchNorm, // (H): of attention's output; absent unless the model has it
    MlpNorm,        // (H)
    GateUp,         // (2 I, H)
    GateUpBias,
    Down, // (H, I)
    DownBias,
    MlpBranchNorm,    // (H): of the MLP's output
    FinalNorm,        // (H)
    Head,             // (V, H); absent if tied
    AdapterA,         // (ranks, in): of the modules that share an input, one below the other
    AdapterB,         // (rows, rank): of one module
    AdapterMagnitude, // (rows): of one module, DoRA
    TokenRows,        // (n, H): rows of the embedding that are trained beside an adapter
};

struct ParamSlot {
    SlotKind kind{};
    GroupId group;
    std::int64_t first = 0; // element in the group
    std::int64_t rows = 0;  // 1-D: rows = length, cols = 1
    std::int64_t cols = 0;
    int rank = 0;         // 1 or 2
    bool decayed = false; // weight decay applies: 2-D slots (decisions.md 15) and convolutions

    std::int64_t count() const noexcept { return rows * cols; }
};

// One tensor of the file format, or some columns of one whose columns lie in several groups: then
// each group has a tensor of its name.
struct NamedTensor {
    std::string name;
    GroupId group;
    std::int64_t first = 0;          // element in the group
    std::vector<std::int64_t> shape; // as in the file, of a part its own
    bool isWide = false;             // saved in F32 even beside others in BF16
    std::int64_t firstColumn = 0;    // of a part, in the file's tensor
    std::int64_t fileColumns = 0;    // of the file's tensor; 0: it is whole

    std::int64_t count() const noexcept;
    bool isPart() const noexcept { return fileColumns > 0; }
    std::vector<std::int64_t> fileShape() const
    {
        return isPart() ? std::vector{shape[0], fileColumns} : shape;
    }
};

struct ParamGroup {
    std::string name; // "embedding", "block 3", "head"
    std::int64_t elements = 0;
    std::vector<ParamSlot> paramSlots;
};

struct FrozenModel; // frozen_model.h

// The parameters that are trained: those of a model, or of some of its layers, or of an adapter.
struct ParamTable {
    std::vector<ParamGroup> groups;
    std::vector<NamedTensor> tensors; // in file order of upstream; a tied head is not listed
    std::int64_t parameters = 0;      // without padding, tied once
    float firstNorm = 1.0F;           // initial norm weight; 0 where their gain is 1 + weight
    TensorPrefix prefix;              // of the names in `tensors`
    bool isWrapped = false;           // the model is the text part of another
    std::vector<CarriedTensor> carried = {}; // what its files hold beside `tensors`
    // The model whose other weights stay as they are; null: all of it is trained.
    std::shared_ptr<const FrozenModel> frozen = {};

    // Null if the group has no such slot.
    const ParamSlot* find(GroupId group, SlotKind kind) const noexcept;
    // The slot that has the tensor's elements.
    const ParamSlot& slotOf(const NamedTensor& tensor) const noexcept;
    // Precondition: the group has a slot that begins there.
    const ParamSlot& slotAt(GroupId group, std::int64_t first) const noexcept;
};

ParamTable buildParamTable(const ModelConfig& config);

// The name that transformers and PEFT give to a module or tensor in memory, which is not that of
// every file: "model.layers.0.mlp" of "language_model.model.layers.0.mlp".
std::string nameInMemory(const ParamTable& model, const std::string& name);

// Does the head of a whole model read the embedding?
bool hasTiedHead(const ParamTable& model) noexcept;

// The first value of a slot's vectors in a new model: 0 for biases, `firstNorm` for most norms.
float firstValue(const ParamTable& table, SlotKind kind) noexcept;

// Appends a slot to the last group, behind its other slots; `kind` is a matrix if rank is 2.
ParamSlot& addSlot(
    ParamTable& table, SlotKind kind, std::int64_t rows, std::int64_t cols, int rank);

} // namespace mr
