// The head: final norm, logits and their loss, chunk by chunk. See block.h.

#include "core/model/block.h"
#include "core/model/norm_of.h"

#include <algorithm>

namespace mr {
namespace {

float logitCap(const LayerContext& c)
{
    return static_cast<float>(c.config->logitCap);
}

// Capped before anything reads them, so a loss and a sample see the same logits.
Status cappedLogits(const LayerContext& c, const TensorView& normed, const TensorView& matrix,
    const TensorView& logits)
{
    MR_TRY(c.ops->linear({normed, matrix, {}, logits}, *c.stream));
    return c.config->logitCap > 0.0 ? c.ops->softcap({logits, logitCap(c)}, *c.stream) : Status();
}

// The rows [first, first + count) of the head: logits, losses and, with `backward`, gradients.
Status headChunk(const LayerContext& c, const HeadTensors& w, const HeadScratch& s,
    std::int64_t first, std::int64_t count, const HeadBackward* backward)
{
    Ops& ops = *c.ops;
    Stream& stream = *c.stream;
    const TensorView normed = s.normed.rows(first, count);
    const TensorView logits = s.logits.rows(0, count);
    const TensorView gradLogits = backward ? s.gradLogits.rows(0, count) : TensorView{};
    MR_TRY(cappedLogits(c, normed, w.matrix, logits));
    MR_TRY(
        ops.crossEntropy({logits, c.batch.targets.rows(first, count), s.losses.rows(first, count),
                             gradLogits, backward ? backward->lossScale : 1.0F, logitCap(c)},
            stream));
    if (!backward)
        return {};
    // Chunks are summed on their own before the micro-batch's gradient is added to the sum of the
    // step, so that it may as well be added elsewhere (decisions.md 8).
    const bool ownSum = backward->product.data != nullptr && backward->accumulateMatrix;
    const bool addToSum = first > 0 || (backward->accumulateMatrix && !ownSum);
    MR_TRY(ops.linearBackwardWeight(
        {gradLogits, normed, ownSum ? backward->product : backward->gradients.matrix, {}, {},
            addToSum},
        stream));
    return ops.linearBackwardInput({gradLogits, w.matrix, s.gradNormed.rows(first, count)}, stream);
}

Status runHead(const LayerContext& c, const HeadTensors& w, const TensorView& x,
    const HeadScratch& s, const HeadBackward* backward)
{
    MR_TRY(c.ops->rmsNorm(
        {x, {}, w.norm, {}, s.normed, s.rstd, epsOf(*c.config), gainOf(*c.config)}, *c.stream));
    const std::int64_t tokens = x.dims[0];
    const std::int64_t rows = s.logits.dims[0];
    for (std::int64_t first = 0; first < tokens; first += rows)
        MR_TRY(headChunk(c, w, s, first, std::min(rows, tokens - first), backward));
    return {};
}

} // namespace

Status forwardHead(const LayerContext& context, const HeadTensors& weights, const TensorView& x,
    const HeadScratch& scratch, const TensorView& losses, std::int64_t micro)
{
    MR_TRY(runHead(context, weights, x, scratch, nullptr));
    return context.ops->sum({scratch.losses, losses, micro}, *context.stream);
}

Status headLogits(const LayerContext& context, const HeadTensors& weights, const TensorView& x,
    const HeadScratch& scratch)
{
    const TensorView normed = scratch.normed.rows(0, 1);
    MR_TRY(context.ops->rmsNorm({x, {}, weights.norm, {}, normed, scratch.rstd.rows(0, 1),
                                    epsOf(*context.config), gainOf(*context.config)},
        *context.stream));
    return cappedLogits(context, normed, weights.matrix, scratch.logits.rows(0, 1));
}

Status backwardHead(const LayerContext& context, const HeadTensors& weights, const TensorView& x,
    const HeadScratch& scratch, const HeadBackward& backward)
{
    Ops& ops = *context.ops;
    Stream& stream = *context.stream;
    MR_TRY(runHead(context, weights, x, scratch, &backward));
    MR_TRY(ops.sum({scratch.losses, backward.losses, backward.micro}, stream));
    if (backward.product.data && backward.accumulateMatrix) {
        const TensorView& sum = backward.gradients.matrix;
        MR_TRY(ops.add({sum, backward.product, sum}, stream));
    }
    return ops.rmsNormBackward({scratch.gradNormed, x, weights.norm, scratch.rstd, {},
                                   backward.gradX, backward.gradients.norm, scratch.normPartial,
                                   backward.accumulate, gainOf(*context.config)},
        stream);
}

} // namespace mr
