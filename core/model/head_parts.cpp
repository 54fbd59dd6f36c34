#include "core/model/head_parts.h"

#include "core/model/norm_of.h"

#include <algorithm>
#include <cstddef>

namespace mr {
namespace {

// A part of the vocabulary, with its rows of the matrix.
struct VocabularyPart {
    std::int64_t index = 0;
    std::int64_t first = 0;
    TensorView matrix;

    std::int64_t rows() const noexcept { return matrix.dims[0]; }
};

// Part `index` of those in the tile.
VocabularyPart partOf(const HeadParts& parts, const HeadTile& tile, std::int64_t index)
{
    const std::int64_t first = parts.first(index);
    return {index, first, tile.matrix.rows(first - tile.first, parts.rowsOf(index))};
}

// Calls fn(part) for the parts of the tile.
template <typename F>
Status forParts(const HeadParts& parts, const HeadTile& tile, bool descending, F&& fn)
{
    const std::int64_t first = tile.first / parts.rows;
    const std::int64_t count = (tile.matrix.dims[0] + parts.rows - 1) / parts.rows;
    for (std::int64_t i = 0; i < count; ++i)
        MR_TRY(fn(partOf(parts, tile, first + (descending ? count - 1 - i : i))));
    return {};
}

// Calls fn(first, count) for the chunks of all rows.
template <typename F>
Status forChunks(const HeadScratch& s, F&& fn)
{
    const std::int64_t tokens = s.rows.normed.dims[0];
    for (std::int64_t first = 0; first < tokens; first += s.chunk)
        MR_TRY(fn(first, std::min(s.chunk, tokens - first)));
    return {};
}

// (count, rows of the part), at the place of the part.
TensorView logitsOf(const HeadScratch& s, const VocabularyPart& part, std::int64_t count)
{
    const std::int64_t at = s.keepsLogits ? s.chunk * part.first : 0;
    return matrixView(s.logits.data + static_cast<std::size_t>(at) * sizeof(float), DType::F32,
        count, part.rows());
}

// (T, rows of the part)
TensorView gradLogitsOf(const HeadScratch& s, const VocabularyPart& part)
{
    const std::int64_t tokens = s.rows.normed.dims[0];
    const std::int64_t at = s.keepsLogits ? tokens * part.first : 0;
    return matrixView(s.gradLogits.data + static_cast<std::size_t>(at) * sizeOf(s.gradLogits.dtype),
        s.gradLogits.dtype, tokens, part.rows());
}

Status makeLogits(const LayerContext& c, const HeadScratch& s, const VocabularyPart& part,
    std::int64_t first, std::int64_t count)
{
    return cappedLogits(c, s.rows.normed.rows(first, count), part.matrix, logitsOf(s, part, count));
}

Status softmaxOfRows(const LayerContext& c, const HeadScratch& s, const VocabularyPart& part,
    std::int64_t first, std::int64_t count)
{
    MR_TRY(makeLogits(c, s, part, first, count));
    return c.ops->softmaxPart({logitsOf(s, part, count), c.batch.targets.rows(first, count),
                                  s.rows.tops.rows(first, count), s.rows.sums.rows(first, count),
                                  s.rows.targetLogits.rows(first, count), part.index, part.first},
        *c.stream);
}

Status joinRows(const LayerContext& c, const HeadRows& rows, std::int64_t first, std::int64_t count)
{
    return c.ops->joinSoftmax({rows.tops.rows(first, count), rows.sums.rows(first, count),
                                  c.batch.targets.rows(first, count),
                                  rows.targetLogits.rows(first, count), rows.top.rows(first, count),
                                  rows.total.rows(first, count), rows.losses.rows(first, count)},
        *c.stream);
}

// From the logits that were made last.
Status gradientOfRows(const LayerContext& c, const HeadScratch& s, const VocabularyPart& part,
    std::int64_t first, std::int64_t count, float scale)
{
    return c.ops->softmaxGradient(
        {logitsOf(s, part, count), c.batch.targets.rows(first, count),
            s.rows.top.rows(first, count), s.rows.total.rows(first, count),
            gradLogitsOf(s, part).rows(first, count), part.first, scale, logitCap(c)},
        *c.stream);
}

// The gradients that follow from that of the logits. Parts descend, and the first one begins the
// sum of the gradient of the input.
Status productsOf(const LayerContext& c, const HeadScratch& s, const VocabularyPart& part,
    const HeadBackward& backward)
{
    const TensorView gradient = gradLogitsOf(s, part);
    if (backward.gradients.matrix.data) {
        const TensorView sum = backward.gradients.matrix.rows(part.first, part.rows());
        MR_TRY(c.ops->linearBackwardWeight(
            {gradient, s.rows.normed, sum, {}, c.productFor(sum), backward.accumulateMatrix},
            *c.stream));
    }
    MR_TRY(rowGradients(
        c, gradient, part.first, s.rows.normed, backward.accumulateMatrix, backward.rows));
    WindowProductArgs input{
        allColumns(gradient), allColumns(part.matrix), allColumns(s.rows.gradSum)};
    input.accumulate = part.index + 1 < s.parts.count();
    return c.ops->windowProduct(input, *c.stream);
}

// Logits of a chunk are kept until its softmax is known.
Status keptGradients(const LayerContext& c, const HeadTile& whole, const HeadScratch& s,
    const HeadBackward& backward)
{
    const auto ofChunk = [&](std::int64_t first, std::int64_t count) -> Status {
        const auto softmax = [&](const VocabularyPart& part) {
            return softmaxOfRows(c, s, part, first, count);
        };
        const auto gradient = [&](const VocabularyPart& part) {
            return gradientOfRows(c, s, part, first, count, backward.lossScale);
        };
        MR_TRY(forParts(s.parts, whole, false, softmax));
        MR_TRY(joinRows(c, s.rows, first, count));
        return forParts(s.parts, whole, false, gradient);
    };
    const auto products = [&](const VocabularyPart& part) {
        return productsOf(c, s, part, backward);
    };
    MR_TRY(forChunks(s, ofChunk));
    return forParts(s.parts, whole, true, products);
}

} // namespace

Status cappedLogits(const LayerContext& c, const TensorView& normed, const TensorView& matrix,
    const TensorView& logits)
{
    MR_TRY(c.ops->linear({normed, matrix, {}, logits}, *c.stream));
    return c.config->logitCap > 0.0 ? c.ops->softcap({logits, logitCap(c)}, *c.stream) : Status();
}

Status rowGradients(const LayerContext& c, const TensorView& gradLogits, std::int64_t first,
    const TensorView& normed, bool accumulate, const HeadRowGradients& rows)
{
    for (const TokenRun& run : rows.runs) {
        const std::int64_t begin = std::max(run.firstToken, first);
        const std::int64_t end = std::min(run.firstToken + run.count, first + gradLogits.dims[1]);
        if (begin >= end)
            continue;
        const TensorView sum = rows.sum.rows(run.firstRow + begin - run.firstToken, end - begin);
        WindowProductArgs args{
            {gradLogits, begin - first, end - begin}, allColumns(normed), allColumns(sum)};
        args.transposeA = true;
        args.accumulate = accumulate;
        MR_TRY(c.ops->windowProduct(args, *c.stream));
    }
    return {};
}

// Rows of the last norm, or their gradient, by ModelConfig::logitScale: a factor of the logits at a
// part of their bytes.
static Status scaleNormed(const LayerContext& c, const TensorView& rows)
{
    if (c.config->logitScale == 1.0)
        return {};
    return c.ops->scale({rows, rows, static_cast<float>(c.config->logitScale)}, *c.stream);
}

Status normBackward(const LayerContext& c, const TensorView& norm, const LayerInput& input,
    const HeadScratch& s, const HeadBackward& backward)
{
    MR_TRY(scaleNormed(c, s.gradNormed));
    return c.ops->rmsNormBackward(
        {s.gradNormed, input.x, norm, s.rows.rstd, {}, backward.gradX, backward.gradients.norm,
            s.normPartial, backward.accumulate, gainOf(*c.config)},
        *c.stream);
}

Status beginHead(
    const LayerContext& c, const TensorView& norm, const LayerInput& input, const HeadScratch& s)
{
    MR_TRY(
        c.ops->rmsNorm(inputNorm(*c.config, input, norm, s.rows.normed, s.rows.rstd), *c.stream));
    return scaleNormed(c, s.rows.normed);
}

Status softmaxOfTile(const LayerContext& c, const HeadTile& tile, const HeadScratch& s)
{
    return forParts(s.parts, tile, false, [&](const VocabularyPart& part) {
        return forChunks(s, [&](std::int64_t first, std::int64_t count) {
            return softmaxOfRows(c, s, part, first, count);
        });
    });
}

Status joinHead(
    const LayerContext& c, const HeadScratch& s, const TensorView& losses, std::int64_t micro)
{
    MR_TRY(joinRows(c, s.rows, 0, s.rows.normed.dims[0]));
    return c.ops->sum({s.rows.losses, losses, micro}, *c.stream);
}

Status gradientsOfTile(
    const LayerContext& c, const HeadTile& tile, const HeadScratch& s, const HeadBackward& backward)
{
    return forParts(s.parts, tile, true, [&](const VocabularyPart& part) -> Status {
        const auto gradient = [&](std::int64_t first, std::int64_t count) -> Status {
            MR_TRY(makeLogits(c, s, part, first, count));
            return gradientOfRows(c, s, part, first, count, backward.lossScale);
        };
        MR_TRY(forChunks(s, gradient));
        return productsOf(c, s, part, backward);
    });
}

Status endHead(const LayerContext& c, const TensorView& norm, const LayerInput& input,
    const HeadScratch& s, const HeadBackward& backward)
{
    const TensorView sum = vectorView(s.rows.gradSum.data, DType::F32, s.rows.gradSum.count());
    const TensorView rounded = vectorView(s.gradNormed.data, s.gradNormed.dtype, sum.count());
    MR_TRY(c.ops->finishGradient({sum, {}, rounded}, *c.stream));
    return normBackward(c, norm, input, s, backward);
}

Status backwardOfParts(const LayerContext& c, const HeadTensors& weights, const LayerInput& input,
    const HeadScratch& s, const HeadBackward& backward)
{
    const HeadTile whole{weights.matrix, 0};
    MR_TRY(beginHead(c, weights.norm, input, s));
    if (s.keepsLogits) {
        MR_TRY(keptGradients(c, whole, s, backward));
        MR_TRY(c.ops->sum({s.rows.losses, backward.losses, backward.micro}, *c.stream));
    } else {
        MR_TRY(softmaxOfTile(c, whole, s));
        MR_TRY(joinHead(c, s, backward.losses, backward.micro));
        MR_TRY(gradientsOfTile(c, whole, s, backward));
    }
    return endHead(c, weights.norm, input, s, backward);
}

Status beginLogits(
    const LayerContext& c, const TensorView& norm, const TensorView& x, const HeadScratch& s)
{
    const TensorView normed = s.rows.normed.rows(0, 1);
    MR_TRY(c.ops->rmsNorm(
        {x, {}, norm, {}, normed, s.rows.rstd.rows(0, 1), epsOf(*c.config), gainOf(*c.config)},
        *c.stream));
    return scaleNormed(c, normed);
}

Status logitsOfTile(const LayerContext& c, const HeadTile& tile, const HeadScratch& s)
{
    const TensorView normed = s.rows.normed.rows(0, 1);
    const auto logits = [&](std::int64_t first, std::int64_t count) {
        return matrixView(
            s.logits.data + static_cast<std::size_t>(first) * sizeof(float), DType::F32, 1, count);
    };
    if (!s.parts.areSeveral())
        return cappedLogits(c, normed, tile.matrix, logits(0, tile.matrix.dims[0]));
    return forParts(s.parts, tile, false, [&](const VocabularyPart& part) {
        return cappedLogits(c, normed, part.matrix, logits(part.first, part.rows()));
    });
}

} // namespace mr
