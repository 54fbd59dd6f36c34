// The head: final norm, logits and their loss, chunk by chunk; their gradients in one product, or
// in few. See block.h.

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

// Rows of a micro-batch.
struct HeadRows {
    std::int64_t first = 0;
    std::int64_t count = 0;
    TensorView gradLogits; // (count, V), c; data null: losses only
    float lossScale = 1.0F;
};

// Losses, and the gradient of the logits, by chunks of logits.
Status headLosses(
    const LayerContext& c, const HeadTensors& w, const HeadScratch& s, const HeadRows& rows)
{
    const std::int64_t chunk = s.logits.dims[0];
    for (std::int64_t at = 0; at < rows.count; at += chunk) {
        const std::int64_t count = std::min(chunk, rows.count - at);
        const std::int64_t first = rows.first + at;
        const TensorView gradient =
            rows.gradLogits.data ? rows.gradLogits.rows(at, count) : TensorView{};
        const bool isInPlace = gradient.data && gradient.dtype == DType::F32;
        const TensorView logits = isInPlace ? gradient : s.logits.rows(0, count);
        MR_TRY(cappedLogits(c, s.normed.rows(first, count), w.matrix, logits));
        MR_TRY(c.ops->crossEntropy(
            {logits, c.batch.targets.rows(first, count), s.losses.rows(first, count), gradient,
                rows.lossScale, logitCap(c)},
            *c.stream));
    }
    return {};
}

// Gradients of the rows of the matrix that are trained alone.
Status rowGradients(const LayerContext& c, const HeadRows& rows, const TensorView& normed,
    const HeadBackward& backward)
{
    for (const TokenRun& run : backward.rows.runs) {
        const TensorView sum = backward.rows.sum.rows(run.firstRow, run.count);
        WindowProductArgs args{
            {rows.gradLogits, run.firstToken, run.count}, allColumns(normed), allColumns(sum)};
        args.transposeA = true;
        args.accumulate = rows.first > 0 || backward.accumulateMatrix;
        MR_TRY(c.ops->windowProduct(args, *c.stream));
    }
    return {};
}

// The gradients that follow from that of the logits. Products of a micro-batch are summed on their
// own before the sum is added to that of the step, so that it may as well be added elsewhere
// (decisions.md 8).
Status headGradients(const LayerContext& c, const HeadTensors& w, const HeadScratch& s,
    const HeadRows& rows, const HeadBackward& backward)
{
    const TensorView normed = s.normed.rows(rows.first, rows.count);
    const bool ownSum = backward.product.data != nullptr && backward.accumulateMatrix;
    const bool addToSum = rows.first > 0 || (backward.accumulateMatrix && !ownSum);
    const TensorView& sum = ownSum ? backward.product : backward.gradients.matrix;
    if (sum.data)
        MR_TRY(c.ops->linearBackwardWeight(
            {rows.gradLogits, normed, sum, {}, c.productFor(sum), addToSum}, *c.stream));
    MR_TRY(rowGradients(c, rows, normed, backward));
    return c.ops->linearBackwardInput(
        {rows.gradLogits, w.matrix, s.gradNormed.rows(rows.first, rows.count)}, *c.stream);
}

Status normHead(
    const LayerContext& c, const HeadTensors& w, const LayerInput& input, const HeadScratch& s)
{
    return c.ops->rmsNorm(inputNorm(*c.config, input, w.norm, s.normed, s.rstd), *c.stream);
}

} // namespace

Status forwardHead(const LayerContext& context, const HeadTensors& weights, const LayerInput& input,
    const HeadScratch& scratch, const TensorView& losses, std::int64_t micro)
{
    MR_TRY(normHead(context, weights, input, scratch));
    MR_TRY(headLosses(context, weights, scratch, {0, input.x.dims[0], {}}));
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

Status backwardHead(const LayerContext& context, const HeadTensors& weights,
    const LayerInput& input, const HeadScratch& scratch, const HeadBackward& backward)
{
    Ops& ops = *context.ops;
    Stream& stream = *context.stream;
    MR_TRY(normHead(context, weights, input, scratch));
    const std::int64_t tokens = input.x.dims[0];
    const std::int64_t most = scratch.gradLogits.dims[0];
    for (std::int64_t first = 0; first < tokens; first += most) {
        const std::int64_t count = std::min(most, tokens - first);
        const HeadRows rows{first, count, scratch.gradLogits.rows(0, count), backward.lossScale};
        MR_TRY(headLosses(context, weights, scratch, rows));
        MR_TRY(headGradients(context, weights, scratch, rows, backward));
    }
    MR_TRY(ops.sum({scratch.losses, backward.losses, backward.micro}, stream));
    if (backward.product.data && backward.accumulateMatrix) {
        const TensorView& sum = backward.gradients.matrix;
        MR_TRY(ops.add({sum, backward.product, sum}, stream));
    }
    return ops.rmsNormBackward({scratch.gradNormed, input.x, weights.norm, scratch.rstd, {},
                                   backward.gradX, backward.gradients.norm, scratch.normPartial,
                                   backward.accumulate, gainOf(*context.config)},
        stream);
}

} // namespace mr
