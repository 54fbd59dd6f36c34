// The input that a block has of each token beside the residual stream, and what blocks do at their
// end: its branch joins the stream behind the MLP, and the output is multiplied by a number.
//
//     fed -> gate -> gelu(gate) input -> out -> norm --+--> scale ->
//      |_______________________________________________|
//
// An input is (norm(x projection / sqrt(H)) + row sqrt(P)) / sqrt(2), of the embedding's output x
// and a row of the inputs' table. It is made for all blocks at once but for the rows of a table
// that is trained: these lie with the blocks.
//
// Threads  Engine thread (it enqueues).
// Errors   Those of the ops, unchanged.
// Source   reference: families_2026 section 2.5 ("per-layer embeddings").

#pragma once

#include "core/model/block.h"

namespace mr {

// kept.mid and scratch.branch, the MLP's -> kept.fed and scratch.branch, the input's.
Status forwardInput(const LayerContext& context, const BlockTensors& weights,
    const BlockActivations& kept, const BlockScratch& scratch);

// As forwardInput(), as far as backward reads it, with kept.inputGateUp as it was left.
Status remakeInput(
    const LayerContext& context, const BlockActivations& kept, const BlockScratch& scratch);

// backward.grad: from the gradient of the stream behind the branch to that of kept.fed. Leaves the
// gradient of the input where the input was.
Status backwardInput(const LayerContext& context, const BlockTensors& weights,
    const BlockActivations& kept, const BlockScratch& scratch, const BlockBackward& backward);

// Weights of the embedding's group that make the inputs of all blocks, or their gradients.
struct InputTensors {
    TensorView projection; // (layers P, H)
    TensorView norm;       // (P)
};

// context.shared->inputs from x (T, H), the embedding's output: without rows of the table and the
// last factor where a block has these rows.
Status makeInputs(const LayerContext& context, const InputTensors& weights, const TensorView& x,
    const InputScratch& scratch);

// Adds to grad (T, H), the gradient of that output. scratch.x holds it again. Null gradients are
// those of frozen weights.
Status makeInputsBack(const LayerContext& context, const InputTensors& weights,
    const InputTensors& gradients, const TensorView& grad, const InputScratch& scratch,
    bool accumulate);

} // namespace mr
