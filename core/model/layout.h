// How the working memory of one micro-batch is cut: activations, scratch, head, batch, scalars.
//
// Planning counts these bytes and the engine cuts the same bytes into tensors, both by the
// functions below, so planned and used can not drift apart. With a null base a layout only counts.
//
// Shapes are written with T = seqLen * microBatch tokens, H, I, V, Q, A = heads * headDim as in
// core/device/ops.h; c is the compute type. What belongs to a block is cut by its kind; where
// blocks share memory it has room for any of them.
//
// Threads  Pure.

#pragma once

#include "core/device/tensor.h"
#include "core/model/model_config.h"
#include "core/model/param_table.h"
#include "core/plan/model_shape.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace mr {

// The size of one micro-batch and how often it occurs in a step.
struct MicroShape {
    std::int64_t seqLen = 0;
    std::int64_t microBatch = 1;   // sequences
    std::int64_t microBatches = 1; // in a step
    DType compute = DType::BF16;
    bool fp8 = false;                // the products of blocks train in FP8 where their shape allows
    std::int64_t adapterRanks = 0;   // mostAdapterRanks() of what is trained
    double dropout = 0.0;            // of its adapters' inputs
    std::int64_t dropoutColumns = 0; // of the widest of these inputs; 0: no dropout
    std::int64_t doraColumns = 0;    // of the widest product with magnitudes; 0: no DoRA
    std::int64_t tokenRows = 0;      // of the embedding, trained beside an adapter
    // The head's sums over a larger vocabulary are formed in parts of so many rows of its matrix,
    // which decides bits; 0: in one.
    std::int64_t headPart = 0;
    bool codedInputs = false; // those of blocks wait for backward in 8 bits

    constexpr std::int64_t tokens() const noexcept { return seqLen * microBatch; }
};

// Activations of a block's forward that backward reads.
struct BlockActivations {
    TensorView normed1; // (T, H), c, and rstd of it; data null where attention reads x itself
    TensorView rstd1;   // (T), F32
    TensorView qkv;     // (T, Q), c, after RoPE
    TensorView queries; // (T, A), c, and keys (T, kvHeads * headDim): what their norms read, and
    TensorView keys;    // rstd of its rows (T, heads or 1), F32; data null unless normed
    TensorView queryRstd;
    TensorView keyRstd;
    TensorView values;    // (T, kvHeads * headDim), c: what the norm of v reads, and its rstd; data
    TensorView valueRstd; // null unless normed
    TensorView visibleQkv; // (firstQuery + T, Q), c: all rows attention reads; qkv in training
    TensorView attention;  // (T, A), c; of a block with a state what its rule gives
    TensorView lse;        // (T, heads), F32
    TensorView joined; // (T, projectedColumns()), c: the first product; data null where it is qkv
    TensorView deltaRstd;  // (T, valueHeads), F32: rstd of the gated norm
    TensorView gated;      // (T, mixedColumns()), c: attention, gated; data null where it is not
    TensorView history;    // (taps - 1, channels), c, and the state (valueHeads, keyDim, valueDim),
    TensorView state;      // F32: what text to come continues from; training leaves them
    TensorView attnBranch; // (T, H), c, and mlpBranch: outputs of attention and MLP before their
    TensorView mlpBranch;  // norms, and rstd of these (T), F32; data null unless they are normed
    TensorView attnBranchRstd;
    TensorView mlpBranchRstd;
    TensorView mid;       // (T, H), c: the residual stream after attention
    TensorView normed2;   // (T, H), c, and rstd of it; data null where the MLP reads mid itself
    TensorView rstd2;     // (T), F32
    TensorView gateUp;    // (T, 2 I), c; backward turns it into its gradient
    TensorView activated; // (T, I), c
    // In blocks with an input of P columns beside the stream; data null in others.
    TensorView fed;            // (T, H), c: the stream after the MLP
    TensorView inputGateUp;    // (T, 2 P), c: gate and input; backward turns them into gradients
    TensorView inputActivated; // (T, P), c
    TensorView inputBranch;    // (T, H), c: before its norm, and rstd of it (T), F32
    TensorView inputRstd;
};

// The residual stream that the last branch of a block is added to.
inline const TensorView& streamOf(const BlockActivations& kept) noexcept
{
    return kept.fed.data ? kept.fed : kept.mid;
}

// Codes of the operands of one FP8 product at a time.
struct CodeScratch {
    TensorView codes;   // (n), U8; data null: no product is in FP8
    TensorView scales;  // (2 * kCodeBlock), F32: element 0 of the first operand, kCodeBlock of the
                        // second
    TensorView partial; // (kQuantizePartials), I32
};

// Scratch of one adapted product at a time (block_adapter.h); data null where there is no adapter.
struct AdapterScratch {
    TensorView hidden;     // (T, adapterRanks), c
    TensorView gradHidden; // (T, adapterRanks), c
    TensorView dropped;    // (T, dropoutColumns), c: an input with dropout; backward, its gradient
    TensorView product; // (T, doraColumns), c: an output before its magnitudes; then its gradient
    TensorView norms;   // (doraColumns), F32: of the rows of W + scale B A
    TensorView factors; // (doraColumns), F32: magnitudes / norms
};

// Scratch of one block at a time, forward and backward.
struct BlockScratch {
    TensorView branch;        // (T, H), c: output of attention or MLP as it is added; backward, the
                              // gradient of one that is normed or scaled
    TensorView gradNormed;    // (T, H), c
    TensorView gradActivated; // (T, I), c
    TensorView gradAttention; // (T, mixedColumns()), c: of what the second product reads
    TensorView gradQkv;       // (T, Q), c
    TensorView gradJoined; // (T, projectedColumns()), c; data null where the first product is qkv.
                           // Forward, that product where no gate keeps it
    TensorView inputGate;  // (T, P), c: the gate's product, and rows of the table; then gradients
    TensorView mixed;      // (T, channels), c: what the delta rule reads, made again for backward
    TensorView gradMixed;  // (T, channels), c
    TensorView gradDelta;  // (T, valueHeads * valueDim), c: of what the rule gives
    TensorView borders;    // these four: scratch of the backward ops
    TensorView deltaPartial;
    TensorView deltaScratch; // its first part also of the forward rule
    TensorView convPartial;
    TensorView headPartial; // (blocks of kNormRowBlock rows, length of a row), F32: partial sums
                            // of the norms of q and k; data null unless normed
    TensorView delta;       // (T, heads), F32
    TensorView normPartial; // (ceil(T / kNormRowBlock), H), F32
    CodeScratch fp8;
    AdapterScratch adapter;
};

// The head's rows of a micro-batch, from one part of the vocabulary to the next.
struct HeadRows {
    TensorView normed;       // (T, H), c
    TensorView rstd;         // (T), F32
    TensorView losses;       // (T), F32
    TensorView tops;         // (T, parts), F32, and so the others, as in JoinSoftmaxArgs; data null
    TensorView sums;         // where the vocabulary is one part
    TensorView targetLogits; // (T), F32
    TensorView top;          // (T), F32
    TensorView total;        // (T), F32
    TensorView gradSum; // (T, H), F32: of the parts that were; data null where nothing is trained
};

// Parts of a vocabulary: `rows` rows of the head's matrix each, the last one fewer.
struct HeadParts {
    std::int64_t vocab = 0;
    std::int64_t rows = 0;

    constexpr bool areSeveral() const noexcept { return rows < vocab; }
    constexpr std::int64_t count() const noexcept { return (vocab + rows - 1) / rows; }
    constexpr std::int64_t first(std::int64_t part) const noexcept { return part * rows; }
    constexpr std::int64_t rowsOf(std::int64_t part) const noexcept
    {
        return rows < vocab - first(part) ? rows : vocab - first(part);
    }
};

struct HeadScratch {
    HeadRows rows;
    TensorView gradNormed;  // (T, H), c
    TensorView logits;      // (headChunkRows, V), F32; of several parts see keepsLogits
    TensorView gradLogits;  // (headProductRows, V), c; data null where nothing is trained. In F32
                            // logits become their gradient where they are
    TensorView normPartial; // (ceil(T / kNormRowBlock), H), F32
    HeadParts parts;
    std::int64_t chunk = 0; // headChunkRows
    // Several parts: logits of a chunk and gradients of all rows have places for every part, one
    // behind the other, (rows, rows of the part) each. False: for one part, so that its logits are
    // made again for the gradient.
    bool keepsLogits = false;
};

struct BatchViews {
    TensorView ids; // (T), I32, and so the others
    TensorView targets;
    TensorView positions;
    TensorView visibleFrom;
    TensorView order;
    TensorView windowFrom; // visibleFrom of windowed blocks; data null where no window cuts
    TensorView inputRows;  // (T, layers P), c: rows of the inputs' table; data null unless it is on
                           // the host
    TensorView rowIds;     // trained rows of the ids; tokenRows for others. Data null where no
    TensorView rowOrder;   // rows are trained. rowOrder sorts them as order sorts ids
    std::int64_t mostKeys = 0; // that a row of visibleFrom sees, at most
};

// The tables of a rope: (seqLen, rotaryDim / 2), F32.
struct RopeTables {
    TensorView cosines;
    TensorView sines;
    TensorView queryCosines; // those of q, where its positions scale it; data null: they are equal
    TensorView querySines;
};

// Constants that the ops of every block read; no step changes them.
inline constexpr std::size_t kMostRopes = 2;
struct ModelConstants {
    std::array<RopeTables, kMostRopes> ropes; // by BlockKind::rope
    TensorView ones; // (headDim), c: the weight of a norm that has none; data null without such
};

// k and v that blocks share, and the sum of their gradients.
struct SharedKeys {
    TensorView keyValues; // (T, 2 keyColumns()), c
    TensorView gradient;  // the same, F32
};

// Tensors that layers of a micro-batch hand each other beside the stream.
inline constexpr std::size_t kMostSharedKeys = 2;
struct SharedViews {
    std::array<SharedKeys, kMostSharedKeys> keys; // by BlockKind::sharedKeys
    TensorView inputs; // (T, layers P), c: those of all blocks; backward leaves their gradients
};

// Scratch of the inputs of blocks.
struct InputScratch {
    TensorView x;           // (T, H), c: rows of the embedding; then their gradient
    TensorView projected;   // (T, layers P), c; then rows of the table
    TensorView normed;      // (T, layers P), c; then the gradient of `projected`
    TensorView rstd;        // (T layers), F32
    TensorView normPartial; // (ceil(T layers / kNormRowBlock), P), F32
};

struct ScalarViews {
    TensorView losses;         // (microBatches), F64: sums by micro-batch
    TensorView scalars;        // (16), U8: StepScalars
    TensorView groupScalars;   // (16 * groups), U8: scalars of each group alone
    TensorView normBlocks;     // (blocks of all groups), F32
    TensorView normChunks;     // (normChunkCount(blocks)), F64: scratch of normJoin
    std::size_t sentBytes = 0; // losses and scalars: bytes that the step's SendScalars copies

    // (16), U8
    TensorView scalarsOf(GroupId group) const;
    // The scratch that joins these. Precondition: no more blocks than those of all groups.
    TensorView chunksFor(const TensorView& blockSums) const;
};

// Rows of logits held at a time. Their products may have other bits for other rows, so this is a
// function of T and V alone.
std::int64_t headChunkRows(std::int64_t tokens, std::int64_t vocab) noexcept;

// Rows of a product for the gradient of the head's matrix: all of the micro-batch, unless their
// gradient of logits takes more than 1 GiB and more than that matrix in F32 (twice, in steps of
// several micro-batches). Then several products are summed in order. A function of `shape` and the
// model alone, because it decides bits.
std::int64_t headProductRows(const ModelConfig& config, const MicroShape& shape) noexcept;

HeadParts headParts(const ModelConfig& config, const MicroShape& shape) noexcept;

// Blocks of 1,024 elements of which the gradient norm is summed; by group they start at a
// multiple of the group's own.
std::int64_t normBlockCount(std::int64_t elements) noexcept;
// Chunks in which normJoin adds the sums of so many blocks.
std::int64_t normChunkCount(std::int64_t blocks) noexcept;

// A kind of block in a model with streams of `hidden` columns.
struct BlockWidths {
    const BlockKind& kind;
    std::int64_t hidden = 0;
};

// The activations that every backward reads as forward left them.
std::size_t layoutKept(
    const BlockWidths& block, const MicroShape& shape, std::byte* base, BlockActivations& out);
// The others: remakeActivations() makes them again from those.
std::size_t layoutRemade(
    const BlockWidths& block, const MicroShape& shape, std::byte* base, BlockActivations& out);
std::size_t layoutScratch(
    const BlockWidths& block, const MicroShape& shape, std::byte* base, BlockScratch& out);

// The inputs of blocks are made and taken back between two blocks, in the memory of a block's
// scratch.
std::size_t layoutInputs(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, InputScratch& out);
std::size_t layoutShared(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, SharedViews& out);

// Room for any block of the model, and in the scratch for the inputs of all.
struct BlockBytes {
    std::size_t kept = 0;
    std::size_t remade = 0;
    std::size_t scratch = 0;

    // All activations: the kept ones, then the others.
    std::size_t activations() const noexcept { return kept + remade; }
};
BlockBytes blockBytes(const ModelConfig& config, const MicroShape& shape);
// `trains`: with the gradient of the logits.
std::size_t layoutHead(const ModelConfig& config, const MicroShape& shape, bool trains,
    std::byte* base, HeadScratch& out);
// A matrix that comes by tiles of whole parts: rows of one micro-batch in flight, and scratch for
// any of them.
std::size_t layoutHeadRows(const ModelConfig& config, const MicroShape& shape, bool trains,
    std::byte* base, HeadRows& out);
std::size_t layoutHeadTile(const ModelConfig& config, const MicroShape& shape, bool trains,
    std::byte* base, HeadScratch& out);
std::size_t layoutBatch(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, BatchViews& out);
std::size_t layoutConstants(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, ModelConstants& out);
// A block's memory of the tokens before, for text: packed rows (seqLen, Q), or a state and the
// last inputs of its convolution.
struct BlockCache {
    TensorView rows;
    TensorView history;
    TensorView state;

    bool isThere() const noexcept { return rows.data != nullptr || state.data != nullptr; }
};
std::size_t layoutCache(const ModelConfig& config, const MicroShape& shape, std::byte* base,
    std::vector<BlockCache>& out);
std::size_t layoutScalars(
    const ParamTable& table, const MicroShape& shape, std::byte* base, ScalarViews& out);

// The fp32 sum of a micro-batch's products for the head's matrix, which a step of several
// micro-batches needs where each has several, in bytes; 0 if it needs none.
std::size_t headProductBytes(const ModelConfig& config, const MicroShape& shape) noexcept;

// Fills host memory. Angle = position * ropeFrequencies() for sequences of `longest` tokens, formed
// in F32 as published models do; cos and sin carry the attention factor.
void fillConstants(const ModelConfig& config, std::int64_t longest, const ModelConstants& host);

// Host memory: windowFrom from visibleFrom.
void fillWindow(const ModelConfig& config, const BatchViews& host);

// The batch as this block attends to it: visibleFrom is that of its window, if it has one.
BatchViews batchOfBlock(const ModelConfig& config, std::int64_t block, const BatchViews& batch);

// The tables by which this block turns; data null if it does not.
RopeTables ropeOfBlock(
    const ModelConfig& config, std::int64_t block, const ModelConstants& constants);

// The weights of a group in the order of its slots; a 1-D weight is a row.
std::vector<WeightShape> weightShapes(const ParamGroup& group);

// Everything planning wants to know of this model at this size. Flops: 2 per multiply-add of the
// matrix products and of attention's lower triangle.
ModelShape modelShape(const ModelConfig& config, const ParamTable& table, const MicroShape& shape);

} // namespace mr
