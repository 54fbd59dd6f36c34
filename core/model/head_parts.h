// Parts of the head that a whole vocabulary and one in parts share. See block.h.
//
// Threads  Engine thread (it enqueues).

#pragma once

#include "core/model/block.h"

namespace mr {

inline float logitCap(const LayerContext& context)
{
    return static_cast<float>(context.config->logitCap);
}

// Capped before anything reads them, so a loss and a sample see the same logits.
Status cappedLogits(const LayerContext& context, const TensorView& normed, const TensorView& matrix,
    const TensorView& logits);

// Gradients of the rows of the matrix that are trained alone and are among those of `gradLogits`,
// whose first column is row `first`.
Status rowGradients(const LayerContext& context, const TensorView& gradLogits, std::int64_t first,
    const TensorView& normed, bool accumulate, const HeadRowGradients& rows);

Status normBackward(const LayerContext& context, const TensorView& norm, const LayerInput& input,
    const HeadScratch& scratch, const HeadBackward& backward);

// backwardHead() of a vocabulary of several parts.
Status backwardOfParts(const LayerContext& context, const HeadTensors& weights,
    const LayerInput& input, const HeadScratch& scratch, const HeadBackward& backward);

} // namespace mr
