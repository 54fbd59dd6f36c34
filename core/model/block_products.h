// The products of a block with its weights, forward and backward, in the compute type or in FP8.
//
// In FP8 the operands become codes with a scale each, which is that of the tensor as it is
// multiplied: weights and activations E4M3, gradients kGradientCode. Sums stay F32, results what
// they are in the compute type. So a product depends on its operands alone: on no earlier step, on
// no other micro-batch, and a block that is computed again gives the same bits.
//
// FP8 is for training (LayerContext::trains) where all three sizes of a product are multiples of
// kCodeBlock and its weight starts at a multiple of 16 bytes; both are facts of the model and of
// the micro-batch. Other products stay in the compute type.
//
// Threads  Engine thread (it enqueues).
// Errors   Those of the ops, unchanged.
// Source   Micikevicius et al., "FP8 Formats for Deep Learning", arXiv 2209.05433; scales from the
//          tensor itself: NVIDIA Transformer Engine's "current scaling".

#pragma once

#include "core/device/ops.h"
#include "core/model/layout.h"
#include "core/model/param_table.h"

#include <cstdint>

namespace mr {

struct LayerContext;

// The type of a gradient's codes; weights and activations are E4M3.
inline constexpr DType kGradientCode = DType::E5M2;

// Are the products of micro-batches with this weight of a block in FP8?
bool isInFp8(const MicroShape& shape, const ParamSlot& weight) noexcept;

// Bytes of the codes of a block's largest product; 0: none is in FP8.
std::int64_t blockCodeBytes(const BlockWidths& block, std::int64_t tokens) noexcept;

// Without memory in `scratch` in the compute type.
Status multiply(const LayerContext& context, const CodeScratch& scratch, const LinearArgs& args);

// The gradients of multiply(). `weight` and `input` have one gradOut. weight.product is as in
// LinearBackwardWeightArgs. Without data in weight.gradWeight its gradient is not wanted.
Status multiplyBack(const LayerContext& context, const CodeScratch& scratch,
    const LinearBackwardWeightArgs& weight, const LinearBackwardInputArgs& input);

} // namespace mr
