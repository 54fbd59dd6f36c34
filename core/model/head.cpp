// The head: final norm, logits and their loss, chunk by chunk; their gradients in one product, or
// in few. See block.h.

#include "core/model/head_parts.h"
#include "core/model/norm_of.h"

#include <algorithm>

namespace mr {
namespace {

// Rows of a micro-batch.
struct RowRange {
    std::int64_t first = 0;
    std::int64_t count = 0;
    TensorView gradLogits; // (count, V), c; data null: losses only
    float lossScale = 1.0F;
};

// Losses, and the gradient of the logits, by chunks of logits.
Status headLosses(
    const LayerContext& c, const HeadTensors& w, const HeadScratch& s, const RowRange& rows)
{
    const std::int64_t chunk = s.logits.dims[0];
    for (std::int64_t at = 0; at < rows.count; at += chunk) {
        const std::int64_t count = std::min(chunk, rows.count - at);
        const std::int64_t first = rows.first + at;
        const TensorView gradient =
            rows.gradLogits.data ? rows.gradLogits.rows(at, count) : TensorView{};
        const bool isInPlace = gradient.data && gradient.dtype == DType::F32;
        const TensorView logits = isInPlace ? gradient : s.logits.rows(0, count);
        MR_TRY(cappedLogits(c, s.rows.normed.rows(first, count), w.matrix, logits));
        MR_TRY(c.ops->crossEntropy(
            {logits, c.batch.targets.rows(first, count), s.rows.losses.rows(first, count), gradient,
                rows.lossScale, logitCap(c)},
            *c.stream));
    }
    return {};
}

// The gradients that follow from that of the logits. Products of a micro-batch are summed on their
// own before the sum is added to that of the step, so that it may as well be added elsewhere
// (decisions.md 8).
Status headGradients(const LayerContext& c, const HeadTensors& w, const HeadScratch& s,
    const RowRange& rows, const HeadBackward& backward)
{
    const TensorView normed = s.rows.normed.rows(rows.first, rows.count);
    const bool ownSum = backward.product.data != nullptr && backward.accumulateMatrix;
    const bool addToSum = rows.first > 0 || (backward.accumulateMatrix && !ownSum);
    const TensorView& sum = ownSum ? backward.product : backward.gradients.matrix;
    if (sum.data)
        MR_TRY(c.ops->linearBackwardWeight(
            {rows.gradLogits, normed, sum, {}, c.productFor(sum), addToSum}, *c.stream));
    MR_TRY(rowGradients(
        c, rows.gradLogits, 0, normed, rows.first > 0 || backward.accumulateMatrix, backward.rows));
    return c.ops->linearBackwardInput(
        {rows.gradLogits, w.matrix, s.gradNormed.rows(rows.first, rows.count)}, *c.stream);
}

} // namespace

Status forwardHead(const LayerContext& context, const HeadTensors& weights, const LayerInput& input,
    const HeadScratch& scratch, const TensorView& losses, std::int64_t micro)
{
    MR_TRY(beginHead(context, weights.norm, input, scratch));
    if (scratch.parts.areSeveral()) {
        MR_TRY(softmaxOfTile(context, {weights.matrix, 0}, scratch));
        return joinHead(context, scratch, losses, micro);
    }
    MR_TRY(headLosses(context, weights, scratch, {0, input.x.dims[0], {}}));
    return context.ops->sum({scratch.rows.losses, losses, micro}, *context.stream);
}

Status headLogits(const LayerContext& context, const HeadTensors& weights, const TensorView& x,
    const HeadScratch& scratch)
{
    MR_TRY(beginLogits(context, weights.norm, x, scratch));
    return logitsOfTile(context, {weights.matrix, 0}, scratch);
}

Status backwardHead(const LayerContext& context, const HeadTensors& weights,
    const LayerInput& input, const HeadScratch& scratch, const HeadBackward& backward)
{
    Ops& ops = *context.ops;
    Stream& stream = *context.stream;
    if (scratch.parts.areSeveral())
        return backwardOfParts(context, weights, input, scratch, backward);
    MR_TRY(beginHead(context, weights.norm, input, scratch));
    const std::int64_t tokens = input.x.dims[0];
    const std::int64_t most = scratch.gradLogits.dims[0];
    for (std::int64_t first = 0; first < tokens; first += most) {
        const std::int64_t count = std::min(most, tokens - first);
        const RowRange rows{first, count, scratch.gradLogits.rows(0, count), backward.lossScale};
        MR_TRY(headLosses(context, weights, scratch, rows));
        MR_TRY(headGradients(context, weights, scratch, rows, backward));
    }
    MR_TRY(ops.sum({scratch.rows.losses, backward.losses, backward.micro}, stream));
    if (backward.product.data && backward.accumulateMatrix) {
        const TensorView& sum = backward.gradients.matrix;
        MR_TRY(ops.add({sum, backward.product, sum}, stream));
    }
    return normBackward(context, weights.norm, input, scratch, backward);
}

} // namespace mr
