#include "core/model/block.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mr {
namespace {

float epsOf(const ModelConfig& config)
{
    return static_cast<float>(config.rmsNormEps);
}

float attentionScale(const ModelConfig& config)
{
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.headDim)));
}

RopeArgs ropeArgs(const LayerContext& c, const TensorView& x, bool inverse)
{
    return {x, c.batch.positions, c.constants.cosTable, c.constants.sinTable,
        static_cast<int>(c.config->heads + c.config->kvHeads), static_cast<int>(c.config->headDim),
        inverse};
}

// Queries or keys: a range of columns of a packed row that are heads with one norm.
struct HeadGroup {
    TensorView columns;    // (n), I32
    TensorView projected;  // (T, n), c
    TensorView rstd;       // (T * n / headDim), F32
    TensorView weight;     // (headDim), c
    TensorView gradWeight; // (headDim), F32
};

std::array<HeadGroup, 2> headGroups(const LayerContext& c, const BlockTensors& w,
    const BlockTensors& g, const BlockActivations& kept)
{
    const std::int64_t q = c.config->heads * c.config->headDim;
    const std::int64_t k = c.config->kvHeads * c.config->headDim;
    const TensorView& columns = c.constants.headColumns;
    return {{{columns.rows(0, q), kept.queries, kept.queryRstd, w.queryNorm, g.queryNorm},
        {columns.rows(q, k), kept.keys, kept.keyRstd, w.keyNorm, g.keyNorm}}};
}

// The first elements of `memory` as (rows, cols).
TensorView shaped(const TensorView& memory, std::int64_t rows, std::int64_t cols)
{
    return matrixView(memory.data, memory.dtype, rows, cols);
}

// Each head of q and k in place of itself, normed.
Status normHeads(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch)
{
    const std::int64_t tokens = kept.qkv.dims[0];
    const std::int64_t dim = c.config->headDim;
    for (const HeadGroup& group : headGroups(c, w, {}, kept)) {
        const std::int64_t cols = group.columns.count();
        const std::int64_t heads = tokens * cols / dim;
        const TensorView apart = shaped(group.projected, tokens, cols);
        const TensorView normed = shaped(scratch.headRows, heads, dim);
        MR_TRY(c.ops->gatherColumns({kept.qkv, group.columns, apart}, *c.stream));
        MR_TRY(c.ops->rmsNorm({shaped(apart, heads, dim), {}, group.weight, {}, normed,
                                  vectorView(group.rstd.data, DType::F32, heads), epsOf(*c.config)},
            *c.stream));
        MR_TRY(c.ops->scatterColumns(
            {shaped(normed, tokens, cols), group.columns, kept.qkv}, *c.stream));
    }
    return {};
}

// gradQkv: of the normed heads on entry, of the projected ones on exit. gradAttention is free.
Status backwardHeads(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const std::int64_t tokens = kept.qkv.dims[0];
    const std::int64_t dim = c.config->headDim;
    for (const HeadGroup& group : headGroups(c, w, backward.gradients, kept)) {
        const std::int64_t cols = group.columns.count();
        const std::int64_t heads = tokens * cols / dim;
        const TensorView gradOut = shaped(scratch.headRows, tokens, cols);
        const TensorView gradX = shaped(scratch.gradAttention, heads, dim);
        MR_TRY(c.ops->gatherColumns({scratch.gradQkv, group.columns, gradOut}, *c.stream));
        MR_TRY(c.ops->rmsNormBackward(
            {shaped(gradOut, heads, dim), shaped(group.projected, heads, dim), group.weight,
                vectorView(group.rstd.data, DType::F32, heads), {}, gradX, group.gradWeight,
                scratch.headPartial.rows(0, (heads + kNormRowBlock - 1) / kNormRowBlock),
                backward.accumulate},
            *c.stream));
        MR_TRY(c.ops->scatterColumns(
            {shaped(gradX, tokens, cols), group.columns, scratch.gradQkv}, *c.stream));
    }
    return {};
}

// Up to `mid`, the residual stream after attention.
Status forwardAttention(const LayerContext& c, const BlockTensors& w, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    Ops& ops = *c.ops;
    Stream& stream = *c.stream;
    const ModelConfig& config = *c.config;
    MR_TRY(ops.rmsNorm({x, {}, w.attnNorm, {}, kept.normed1, kept.rstd1, epsOf(config)}, stream));
    MR_TRY(ops.linear({kept.normed1, w.qkv, w.qkvBias, kept.qkv}, stream));
    if (config.queryKeyNorm)
        MR_TRY(normHeads(c, w, kept, scratch));
    MR_TRY(ops.rope(ropeArgs(c, kept.qkv, false), stream));
    MR_TRY(
        ops.attention({kept.visibleQkv, c.batch.visibleFrom, kept.attention, kept.lse,
                          static_cast<int>(config.heads), static_cast<int>(config.kvHeads),
                          static_cast<int>(config.headDim), attentionScale(config), c.firstQuery},
            stream));
    return ops.linear({kept.attention, w.attnOut, w.attnOutBias, scratch.branch}, stream);
}

// From `mid` to the activation that the last product reads. The norm adds the residual.
Status forwardMlp(const LayerContext& c, const BlockTensors& w, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    Ops& ops = *c.ops;
    Stream& stream = *c.stream;
    MR_TRY(ops.rmsNorm(
        {scratch.branch, x, w.mlpNorm, kept.mid, kept.normed2, kept.rstd2, epsOf(*c.config)},
        stream));
    MR_TRY(ops.linear({kept.normed2, w.gateUp, w.gateUpBias, kept.gateUp}, stream));
    return ops.swiglu({kept.gateUp, kept.activated}, stream);
}

Status backwardMlp(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockTensors& g = backward.gradients;
    const TensorView& grad = backward.grad;
    Ops& ops = *c.ops;
    Stream& stream = *c.stream;
    MR_TRY(ops.linearBackwardWeight(
        {grad, kept.activated, g.down, g.downBias, {}, backward.accumulate}, stream));
    MR_TRY(ops.linearBackwardInput({grad, w.down, scratch.gradActivated}, stream));
    MR_TRY(ops.swigluBackward({kept.gateUp, scratch.gradActivated, kept.gateUp}, stream));
    MR_TRY(ops.linearBackwardWeight(
        {kept.gateUp, kept.normed2, g.gateUp, g.gateUpBias, {}, backward.accumulate}, stream));
    MR_TRY(ops.linearBackwardInput({kept.gateUp, w.gateUp, scratch.gradNormed}, stream));
    return ops.rmsNormBackward({scratch.gradNormed, kept.mid, w.mlpNorm, kept.rstd2, grad, grad,
                                   g.mlpNorm, scratch.normPartial, backward.accumulate},
        stream);
}

Status backwardAttention(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockTensors& g = backward.gradients;
    const TensorView& grad = backward.grad;
    Ops& ops = *c.ops;
    Stream& stream = *c.stream;
    const ModelConfig& config = *c.config;
    MR_TRY(ops.linearBackwardWeight(
        {grad, kept.attention, g.attnOut, g.attnOutBias, {}, backward.accumulate}, stream));
    MR_TRY(ops.linearBackwardInput({grad, w.attnOut, scratch.gradAttention}, stream));
    MR_TRY(
        ops.attentionBackward({kept.qkv, c.batch.visibleFrom, kept.attention, kept.lse,
                                  scratch.gradAttention, scratch.delta, scratch.gradQkv,
                                  static_cast<int>(config.heads), static_cast<int>(config.kvHeads),
                                  static_cast<int>(config.headDim), attentionScale(config)},
            stream));
    MR_TRY(ops.rope(ropeArgs(c, scratch.gradQkv, true), stream));
    if (config.queryKeyNorm)
        MR_TRY(backwardHeads(c, w, kept, scratch, backward));
    MR_TRY(ops.linearBackwardWeight(
        {scratch.gradQkv, kept.normed1, g.qkv, g.qkvBias, {}, backward.accumulate}, stream));
    return ops.linearBackwardInput({scratch.gradQkv, w.qkv, scratch.gradNormed}, stream);
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
    MR_TRY(ops.linear({normed, w.matrix, {}, logits}, stream));
    MR_TRY(
        ops.crossEntropy({logits, c.batch.targets.rows(first, count), s.losses.rows(first, count),
                             gradLogits, backward ? backward->lossScale : 1.0F},
            stream));
    if (!backward)
        return {};
    // Chunks are summed on their own before the micro-batch's gradient is added to the sum of the
    // step, so that it may as well be added elsewhere (DECISIONS 8).
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
    MR_TRY(c.ops->rmsNorm({x, {}, w.norm, {}, s.normed, s.rstd, epsOf(*c.config)}, *c.stream));
    const std::int64_t tokens = x.dims[0];
    const std::int64_t rows = s.logits.dims[0];
    for (std::int64_t first = 0; first < tokens; first += rows)
        MR_TRY(headChunk(c, w, s, first, std::min(rows, tokens - first), backward));
    return {};
}

} // namespace

TensorView slotView(
    const ParamTable& table, GroupId group, SlotKind kind, std::byte* groupData, DType dtype)
{
    const ParamSlot* slot = table.find(group, kind);
    if (!slot)
        return {};
    std::byte* data = groupData + static_cast<std::size_t>(slot->first) * sizeOf(dtype);
    return slot->rank == 1 ? vectorView(data, dtype, slot->count())
                           : matrixView(data, dtype, slot->rows, slot->cols);
}

BlockTensors blockTensors(const ParamTable& table, GroupId group, std::byte* groupData, DType dtype)
{
    const auto view = [&](SlotKind kind) { return slotView(table, group, kind, groupData, dtype); };
    return {view(SlotKind::AttnNorm), view(SlotKind::Qkv), view(SlotKind::QkvBias),
        view(SlotKind::QueryNorm), view(SlotKind::KeyNorm), view(SlotKind::AttnOut),
        view(SlotKind::AttnOutBias), view(SlotKind::MlpNorm), view(SlotKind::GateUp),
        view(SlotKind::GateUpBias), view(SlotKind::Down), view(SlotKind::DownBias)};
}

Status forwardBlock(const LayerContext& context, const BlockTensors& weights, const TensorView& x,
    const TensorView& out, const BlockActivations& kept, const BlockScratch& scratch)
{
    MR_TRY(recomputeBlock(context, weights, x, kept, scratch));
    MR_TRY(context.ops->linear(
        {kept.activated, weights.down, weights.downBias, scratch.branch}, *context.stream));
    return context.ops->add({kept.mid, scratch.branch, out}, *context.stream);
}

Status recomputeBlock(const LayerContext& context, const BlockTensors& weights, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    MR_TRY(forwardAttention(context, weights, x, kept, scratch));
    return forwardMlp(context, weights, x, kept, scratch);
}

Status backwardBlock(const LayerContext& context, const BlockTensors& weights, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch, const BlockBackward& backward)
{
    const TensorView& grad = backward.grad;
    MR_TRY(backwardMlp(context, weights, kept, scratch, backward));
    MR_TRY(backwardAttention(context, weights, kept, scratch, backward));
    return context.ops->rmsNormBackward(
        {scratch.gradNormed, x, weights.attnNorm, kept.rstd1, grad, grad,
            backward.gradients.attnNorm, scratch.normPartial, backward.accumulate},
        *context.stream);
}

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
    MR_TRY(context.ops->rmsNorm(
        {x, {}, weights.norm, {}, normed, scratch.rstd.rows(0, 1), epsOf(*context.config)},
        *context.stream));
    return context.ops->linear(
        {normed, weights.matrix, {}, scratch.logits.rows(0, 1)}, *context.stream);
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
    return ops.rmsNormBackward(
        {scratch.gradNormed, x, weights.norm, scratch.rstd, {}, backward.gradX,
            backward.gradients.norm, scratch.normPartial, backward.accumulate},
        stream);
}

} // namespace mr
