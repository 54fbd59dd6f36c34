// The layers of the Llama kind as sequences of ops: embedding, transformer block, head; forward and
// backward.
//
//     block:  x -> norm -> qkv -> rope -> attention -> out --+-> norm -> gate,up -> swiglu -> down
//     --+->
//             |_____________________________________________|
//             |_____________________________________|
//
// BlockKind says what a block leaves out and adds: norms of what branches read, of what they add,
// of q and k; a factor of what they add; which positions turn, and how.
//
// Nothing here allocates or waits: views in, ops on a stream out. Which memory the views lie in,
// and when, is the plan's business.
//
// Order    Gradients of weights follow `accumulate`: false overwrites, true adds in one F32
//          addition per element, so a micro-batch's gradient is formed on its own and then added.
// Threads  Engine thread (it enqueues).
// Errors   Those of the ops, unchanged.
// Source   Touvron et al., "Llama 2" (architecture); reference model_semantics 1.2 to 1.7.

#pragma once

#include "core/device/ops.h"
#include "core/model/added_apart.h"
#include "core/model/block_adapter.h"
#include "core/model/layout.h"
#include "core/model/saved_modules.h"

#include <cstdint>
#include <span>

namespace mr {

// A group's tensors: the weights as ops read them (c), or their gradients: F32, or c in a step of
// one micro-batch (MemoryPlan::sumBytes). Views of slots the model does not have stay null.
struct BlockTensors {
    TensorView attnNorm; // (H)
    TensorView qkv;      // (projectedColumns(), H)
    TensorView qkvBias;
    TensorView queryNorm; // (length of a normed row)
    TensorView keyNorm;
    TensorView attnOut; // (H, mixedColumns())
    TensorView attnOutBias;
    TensorView attnBranchNorm; // (H)
    TensorView mlpNorm;        // (H)
    TensorView gateUp;         // (2 I, H)
    TensorView gateUpBias;
    TensorView down; // (H, I)
    TensorView downBias;
    TensorView mlpBranchNorm; // (H)
    TensorView conv;          // (channels * taps)
    TensorView logDecay;      // (valueHeads)
    TensorView timeBias;      // (valueHeads)
    TensorView deltaNorm;     // (valueDim)
    TensorView inputGate;     // (P, H): of the block's own input
    TensorView inputOut;      // (H, P)
    TensorView inputNorm;     // (H)
    TensorView inputTable;    // (rows, P); data null where its rows come from the host
};

// View of one slot inside its group's memory; null data if the group has no such slot.
TensorView slotView(
    const ParamTable& table, GroupId group, SlotKind kind, std::byte* groupData, DType dtype);
BlockTensors blockTensors(
    const ParamTable& table, GroupId group, std::byte* groupData, DType dtype);

// Arguments of every layer call. For a block, `kind` is its own, `batch` batchOfBlock()'s, `rope`
// ropeOfBlock()'s.
struct LayerContext {
    Ops* ops = nullptr;
    Stream* stream = nullptr;
    const ModelConfig* config = nullptr;
    BatchViews batch;
    const BlockKind* kind = nullptr;
    RopeTables rope = {};
    std::int64_t firstQuery = 0;           // tokens before the first of x; 0 in training
    const AddedApart* apart = nullptr;     // null: every product adds to its sum itself
    bool trains = false;                   // products may be in FP8
    const BlockAdapter* adapter = nullptr; // of the block; null: it has none
    AdapterDropout dropout = {};           // in training alone
    bool generates = false; // rows continue from what the block keeps of the tokens before
    std::int64_t block = 0;
    const SharedViews* shared = nullptr; // of the micro-batch; null where layers share nothing
    TensorView ones = {};                // ModelConstants::ones

    TensorView productFor(const TensorView& gradWeight) const noexcept
    {
        return apart ? apart->productFor(gradWeight) : TensorView{};
    }
};

// The input of a layer. The layer below may leave its output in two parts; the first norm then adds
// them, rounded to c, and stores the sum in x.
struct LayerInput {
    TensorView x;      // (T, H)
    TensorView stream; // (T, H): the residual stream; data null: x is there already
    TensorView branch; // (T, H): what is added to it
};

// Input -> out (T, H). Keeps in `kept` the activations that backward reads. With null data of `out`
// the parts stay as they are, in kept.mid and scratch.branch.
Status forwardBlock(const LayerContext& context, const BlockTensors& weights,
    const LayerInput& input, const TensorView& out, const BlockActivations& kept,
    const BlockScratch& scratch);

// Recomputes a block that kept nothing but x: forwardBlock() as far as backward reads it.
Status recomputeBlock(const LayerContext& context, const BlockTensors& weights, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch);

// Makes the activations of layoutRemade() again from x and the kept ones: a fraction of the work.
// Comes before backwardBlock(), which overwrites kept.gateUp.
Status remakeActivations(const LayerContext& context, const BlockTensors& weights,
    const TensorView& x, const BlockActivations& kept, const BlockScratch& scratch);

// A weight without data in `gradients` gets no gradient.
struct BlockBackward {
    BlockTensors gradients;
    TensorView grad;         // (T, H): of the block's output on entry, of its input on exit
    bool accumulate = false; // add to `gradients`
    BlockAdapter adapter;    // gradients of the context's
};

// The gradients of a block with input x. Overwrites kept.gateUp.
Status backwardBlock(const LayerContext& context, const BlockTensors& weights, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch, const BlockBackward& backward);

struct HeadTensors {
    TensorView norm;   // (H)
    TensorView matrix; // (V, H): lm_head, or the embedding
};

// losses[micro] = sum of the cross-entropies of this micro-batch, natural logarithm.
Status forwardHead(const LayerContext& context, const HeadTensors& weights, const LayerInput& input,
    const HeadScratch& scratch, const TensorView& losses, std::int64_t micro);

// The first V elements of scratch.logits = the logits of x (1, H).
Status headLogits(const LayerContext& context, const HeadTensors& weights, const TensorView& x,
    const HeadScratch& scratch);

// Gradients of rows of the matrix, where these are trained alone.
struct HeadRowGradients {
    TensorView sum; // (n, H), F32
    std::span<const TokenRun> runs;
};

struct HeadBackward {
    HeadTensors gradients; // a weight without data here gets none
    HeadRowGradients rows;
    TensorView losses;       // as in forwardHead
    std::int64_t micro = 0;  // its element
    TensorView product;      // (V, H), F32, scratch; null unless headProductBytes() asks for it
    TensorView gradX;        // (T, H), c; overwritten
    bool accumulate = false; // norm's gradient
    bool accumulateMatrix = false;
    float lossScale = 1.0F; // 1 / trained tokens of the whole step
};

// forwardHead and its gradients, chunk by chunk: never all logits in F32. The gradient of the
// matrix is one product for the rows that scratch.gradLogits has.
Status backwardHead(const LayerContext& context, const HeadTensors& weights,
    const LayerInput& input, const HeadScratch& scratch, const HeadBackward& backward);

// The head by tiles of its matrix, each of whole parts of the vocabulary (HeadParts), with the bits
// of the functions above: beginHead, softmaxOfTile by ascending tiles, joinHead; in a step then
// gradientsOfTile by descending tiles, endHead. scratch.rows is the micro-batch's.
struct HeadTile {
    TensorView matrix;      // (n, H)
    std::int64_t first = 0; // its first row of the whole matrix
};

Status beginHead(const LayerContext& context, const TensorView& norm, const LayerInput& input,
    const HeadScratch& scratch);
Status softmaxOfTile(const LayerContext& context, const HeadTile& tile, const HeadScratch& scratch);
// As forwardHead: losses[micro].
Status joinHead(const LayerContext& context, const HeadScratch& scratch, const TensorView& losses,
    std::int64_t micro);
Status gradientsOfTile(const LayerContext& context, const HeadTile& tile,
    const HeadScratch& scratch, const HeadBackward& backward);
Status endHead(const LayerContext& context, const TensorView& norm, const LayerInput& input,
    const HeadScratch& scratch, const HeadBackward& backward);
// headLogits by tiles: beginLogits, then logitsOfTile for every tile.
Status beginLogits(const LayerContext& context, const TensorView& norm, const TensorView& x,
    const HeadScratch& scratch);
Status logitsOfTile(const LayerContext& context, const HeadTile& tile, const HeadScratch& scratch);

} // namespace mr
