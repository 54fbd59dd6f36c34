#include "core/model/block_mixers.h"

#include "core/model/norm_of.h"

#include <cmath>

namespace mr {
namespace {

float attentionScale(const BlockKind& kind)
{
    return static_cast<float>(kind.scoreScale > 0.0
                                  ? kind.scoreScale
                                  : 1.0 / std::sqrt(static_cast<double>(kind.headDim)));
}

float attentionCap(const BlockKind& kind)
{
    return static_cast<float>(kind.attentionCap);
}

// Heads of k that the block makes itself.
std::int64_t ownKeyHeads(const BlockKind& kind)
{
    return kind.readsKeys() ? 0 : kind.kvHeads;
}

RopeArgs ropeArgs(const LayerContext& c, const TensorView& x, bool inverse)
{
    const BlockKind& kind = *c.kind;
    return {x, c.batch.positions, c.rope.cosines, c.rope.sines,
        static_cast<int>(kind.heads + ownKeyHeads(kind)), static_cast<int>(kind.headDim),
        static_cast<int>(2 * c.rope.cosines.dims[1]), inverse, kind.pairs};
}

// The heads of q and k of packed rows, turned by their positions, or back.
Status turn(const LayerContext& c, const TensorView& qkv, bool inverse)
{
    if (c.rope.cosines.data == nullptr)
        return {};
    RopeArgs args = ropeArgs(c, qkv, inverse);
    if (c.rope.queryCosines.data == nullptr)
        return c.ops->rope(args, *c.stream);
    args.firstHead = static_cast<int>(c.kind->heads);
    args.heads = static_cast<int>(c.kind->kvHeads);
    MR_TRY(c.ops->rope(args, *c.stream));
    args.firstHead = 0;
    args.heads = static_cast<int>(c.kind->heads);
    args.cosTable = c.rope.queryCosines;
    args.sinTable = c.rope.querySines;
    return c.ops->rope(args, *c.stream);
}

// Memory of a tensor that nobody reads any more, as scratch.
TensorView floatsOf(const TensorView& unread)
{
    return vectorView(
        unread.data, DType::F32, static_cast<std::int64_t>(unread.bytes() / sizeof(float)));
}

HeadNorm queryNorm(const BlockTensors& w, const BlockActivations& kept)
{
    return {kept.queries, kept.queryRstd, w.queryNorm};
}

HeadNorm keyNorm(const BlockTensors& w, const BlockActivations& kept)
{
    return {kept.keys, kept.keyRstd, w.keyNorm};
}

// The norms of q and k, as BlockKind::queryKeyNorm cuts them into calls: each head of both, and
// their rotation where it follows and has one table; or the whole row of q, then that of k.
HeadNormRopeArgs headNorms(
    const LayerContext& c, const BlockTensors& w, const BlockActivations& kept, bool turns)
{
    const BlockKind& kind = *c.kind;
    HeadNormRopeArgs args{kept.qkv, queryNorm(w, kept), keyNorm(w, kept), c.batch.positions,
        c.rope.cosines, c.rope.sines, static_cast<int>(kind.heads),
        static_cast<int>(ownKeyHeads(kind)), static_cast<int>(kind.headDim), 0, epsOf(*c.config),
        gainOf(*c.config)};
    args.rotaryDim = turns ? static_cast<int>(2 * c.rope.cosines.dims[1]) : 0;
    return args;
}

HeadNormRopeArgs rowNorm(
    const LayerContext& c, const BlockTensors& w, const BlockActivations& kept, bool isQuery)
{
    HeadNormRopeArgs args = headNorms(c, w, kept, false);
    const BlockKind& kind = *c.kind;
    args.queries = isQuery ? queryNorm(w, kept) : keyNorm(w, kept);
    args.headDim = static_cast<int>(isQuery ? kind.queryColumns() : kind.keyColumns());
    args.heads = 1;
    args.kvHeads = 0;
    args.firstHead = isQuery ? 0 : static_cast<int>(kind.queryColumns() / kind.keyColumns());
    return args;
}

// The norm of each head of v, which has no weight.
HeadNormRopeArgs valueNorm(
    const LayerContext& c, const BlockTensors& w, const BlockActivations& kept)
{
    HeadNormRopeArgs args = headNorms(c, w, kept, false);
    args.queries = {kept.values, kept.valueRstd, c.ones.rows(0, c.kind->headDim)};
    args.heads = static_cast<int>(c.kind->kvHeads);
    args.kvHeads = 0;
    args.firstHead = static_cast<int>(c.kind->heads + c.kind->kvHeads);
    args.gain = NormGain::Weight;
    return args;
}

// Does one op norm the heads and turn them?
bool turnsWithNorm(const LayerContext& c)
{
    return c.kind->queryKeyNorm == QueryKeyNorm::Heads && c.rope.cosines.data != nullptr &&
           c.rope.queryCosines.data == nullptr && c.kind->pairs == RopePairs::Halves;
}

Status normHeads(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept)
{
    if (c.kind->normsOwnValues())
        MR_TRY(c.ops->headNormRope(valueNorm(c, w, kept), *c.stream));
    if (!c.kind->normsQueries())
        return {};
    if (!c.kind->normsWholeRows())
        return c.ops->headNormRope(headNorms(c, w, kept, turnsWithNorm(c)), *c.stream);
    MR_TRY(c.ops->headNormRope(rowNorm(c, w, kept, true), *c.stream));
    return c.ops->headNormRope(rowNorm(c, w, kept, false), *c.stream);
}

// kept.qkv: from the projection to what attention reads.
Status placeHeads(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept)
{
    if (c.kind->queryKeyNorm == QueryKeyNorm::TurnedHeads) {
        MR_TRY(turn(c, kept.qkv, false));
        return normHeads(c, w, kept);
    }
    MR_TRY(normHeads(c, w, kept));
    return turnsWithNorm(c) ? Status() : turn(c, kept.qkv, false);
}

// The backward call of a forward one, on scratch.gradQkv.
Status backwardNorm(const LayerContext& c, const HeadNormRopeArgs& forward,
    const BlockScratch& scratch, const BlockBackward& backward, const TensorView& gradQuery,
    const TensorView& gradKey)
{
    const std::int64_t blocks =
        headNormPartials(forward.qkv.dims[0], forward.heads, forward.kvHeads);
    return c.ops->headNormRopeBackward(
        {scratch.gradQkv, forward.queries, forward.keys, gradQuery, gradKey,
            matrixView(scratch.headPartial.data, DType::F32, blocks, forward.headDim),
            forward.positions, forward.cosTable, forward.sinTable, forward.heads, forward.kvHeads,
            forward.headDim, forward.rotaryDim, backward.accumulate, forward.gain,
            forward.firstHead},
        *c.stream);
}

Status normHeadsBack(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockTensors& g = backward.gradients;
    if (c.kind->normsOwnValues())
        MR_TRY(backwardNorm(c, valueNorm(c, w, kept), scratch, backward, {}, {}));
    if (!c.kind->normsQueries())
        return {};
    if (!c.kind->normsWholeRows())
        return backwardNorm(
            c, headNorms(c, w, kept, turnsWithNorm(c)), scratch, backward, g.queryNorm, g.keyNorm);
    MR_TRY(backwardNorm(c, rowNorm(c, w, kept, true), scratch, backward, g.queryNorm, {}));
    return backwardNorm(c, rowNorm(c, w, kept, false), scratch, backward, g.keyNorm, {});
}

// scratch.gradQkv: from the gradient of what attention read to that of the projection.
Status backwardHeads(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    if (c.kind->queryKeyNorm == QueryKeyNorm::TurnedHeads) {
        MR_TRY(normHeadsBack(c, w, kept, scratch, backward));
        return turn(c, scratch.gradQkv, true);
    }
    if (!turnsWithNorm(c))
        MR_TRY(turn(c, scratch.gradQkv, true));
    return normHeadsBack(c, w, kept, scratch, backward);
}

// k and v of packed rows, beside those that blocks share.
const SharedKeys& sharedKeys(const LayerContext& c)
{
    return c.shared->keys[static_cast<std::size_t>(c.kind->sharedKeys)];
}

// The packed rows from a product that has none of v, or of neither k nor v.
Status packQueries(const LayerContext& c, const TensorView& product, const TensorView& qkv)
{
    const BlockKind& kind = *c.kind;
    const std::int64_t q = kind.queryColumns();
    const std::int64_t k = kind.keyColumns();
    MR_TRY(c.ops->copyColumns({product, qkv, 0, 0, kind.projectedColumns()}, *c.stream));
    if (!kind.readsKeys())
        return c.ops->copyColumns({product, qkv, q, q + k, k}, *c.stream);
    const TensorView given = sharedKeys(c).keyValues.rows(0, qkv.dims[0]);
    return c.ops->copyColumns({given, qkv, 0, q, 2 * k}, *c.stream);
}

// The gradient of that product. That of k and v of another block joins what others of its readers
// left.
Status packQueriesBack(const LayerContext& c, const TensorView& gradQkv, const TensorView& gradient)
{
    const BlockKind& kind = *c.kind;
    const std::int64_t q = kind.queryColumns();
    const std::int64_t k = kind.keyColumns();
    MR_TRY(c.ops->copyColumns({gradQkv, gradient, 0, 0, kind.projectedColumns()}, *c.stream));
    if (!kind.readsKeys())
        return c.ops->copyColumns({gradQkv, gradient, q + k, q, k, true}, *c.stream);
    return c.ops->copyColumns(
        {gradQkv, sharedKeys(c).gradient, q, 0, 2 * k, !kind.readsLast}, *c.stream);
}

// kept.qkv from the first product.
Status unpackProduct(
    const LayerContext& c, const BlockActivations& kept, const BlockScratch& scratch)
{
    const BlockKind& kind = *c.kind;
    if (kind.gatesAttention)
        return c.ops->splitQueries(
            {kept.joined, kept.qkv, static_cast<int>(kind.heads), static_cast<int>(kind.kvHeads),
                static_cast<int>(kind.headDim)},
            *c.stream);
    return kind.joinsProduct() ? packQueries(c, projectedOf(kind, kept, scratch), kept.qkv)
                               : Status();
}

Status attend(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch)
{
    const BlockKind& kind = *c.kind;
    MR_TRY(unpackProduct(c, kept, scratch));
    MR_TRY(placeHeads(c, w, kept));
    if (kind.givesKeys())
        MR_TRY(c.ops->copyColumns({kept.qkv, sharedKeys(c).keyValues.rows(0, kept.qkv.dims[0]),
                                      kind.queryColumns(), 0, 2 * kind.keyColumns()},
            *c.stream));
    return c.ops->attention({kept.visibleQkv, c.batch.visibleFrom, kept.attention, kept.lse,
                                static_cast<int>(kind.heads), static_cast<int>(kind.kvHeads),
                                static_cast<int>(kind.headDim), attentionScale(kind), c.firstQuery,
                                attentionCap(kind), c.batch.mostKeys},
        *c.stream);
}

Status attendBack(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockKind& kind = *c.kind;
    const auto heads = static_cast<int>(kind.heads);
    const auto kvHeads = static_cast<int>(kind.kvHeads);
    const auto headDim = static_cast<int>(kind.headDim);
    if (kind.gatesAttention)
        MR_TRY(c.ops->gateHeadsBackward(
            {scratch.gradAttention, kept.attention, kept.joined, scratch.gradAttention,
                scratch.gradJoined, heads, kvHeads, headDim},
            *c.stream));
    MR_TRY(c.ops->attentionBackward(
        {kept.qkv, c.batch.visibleFrom, kept.attention, kept.lse, scratch.gradAttention,
            scratch.delta, scratch.gradQkv, heads, kvHeads, headDim, attentionScale(kind),
            attentionCap(kind), floatsOf(kept.gateUp), c.batch.mostKeys},
        *c.stream));
    if (kind.givesKeys())
        MR_TRY(c.ops->copyColumns({sharedKeys(c).gradient, scratch.gradQkv, 0, kind.queryColumns(),
                                      2 * kind.keyColumns(), true},
            *c.stream));
    MR_TRY(backwardHeads(c, w, kept, scratch, backward));
    if (kind.gatesAttention)
        return c.ops->splitQueries(
            {scratch.gradJoined, scratch.gradQkv, heads, kvHeads, headDim, true}, *c.stream);
    return kind.joinsProduct() ? packQueriesBack(c, scratch.gradQkv, scratch.gradJoined) : Status();
}

// The weight of the convolution, or its gradient, as the op reads it.
TensorView tapsOf(const BlockKind& kind, const TensorView& slot)
{
    if (slot.data == nullptr)
        return {};
    return matrixView(slot.data, slot.dtype, kind.delta.columns(), kind.taps);
}

// The first row of each row's document, of the rows at hand.
TensorView documentsOf(const LayerContext& c, std::int64_t rows)
{
    return c.batch.visibleFrom.rows(0, rows);
}

// The rule's input, in scratch.
Status convolve(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch)
{
    const std::int64_t rows = kept.joined.dims[0];
    CausalConvArgs args{kept.joined, tapsOf(*c.kind, w.conv), documentsOf(c, rows),
        scratch.mixed.rows(0, rows), {}};
    if (c.generates) {
        args.history = kept.history;
        args.continues = c.firstQuery > 0;
    }
    return c.ops->causalConv(args, *c.stream);
}

// The part of the backward pass's scratch that the forward pass of these rows uses.
TensorView ruleScratch(const LayerContext& c, const BlockScratch& scratch, std::int64_t rows)
{
    return scratch.deltaScratch.rows(0, deltaForwardScratch(rows, c.kind->delta));
}

Status runRule(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch)
{
    const std::int64_t rows = kept.joined.dims[0];
    MR_TRY(convolve(c, w, kept, scratch));
    GatedDeltaArgs args{scratch.mixed.rows(0, rows), kept.joined, w.logDecay, w.timeBias,
        documentsOf(c, rows), kept.attention, {}, ruleScratch(c, scratch, rows), c.kind->delta,
        c.kind->ruleGateColumn()};
    if (c.generates) {
        args.state = kept.state;
        args.continues = c.firstQuery > 0;
    }
    return c.ops->gatedDelta(args, *c.stream);
}

// The convolution is made again: it costs a fraction of what keeping it would.
Status runRuleBack(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockKind& kind = *c.kind;
    const BlockTensors& g = backward.gradients;
    const TensorView documents = documentsOf(c, kept.joined.dims[0]);
    MR_TRY(convolve(c, w, kept, scratch));
    MR_TRY(c.ops->gatedNormBackward(
        {scratch.gradAttention, kept.attention, kept.joined, w.deltaNorm, kept.deltaRstd,
            scratch.gradDelta, scratch.gradJoined, g.deltaNorm, scratch.headPartial,
            kind.normGateColumn(), backward.accumulate},
        *c.stream));
    MR_TRY(c.ops->gatedDeltaBackward(
        {scratch.mixed, kept.joined, w.logDecay, w.timeBias, documents, scratch.gradDelta,
            scratch.gradMixed, scratch.gradJoined, g.logDecay, g.timeBias, scratch.borders,
            scratch.deltaPartial, scratch.deltaScratch, kind.delta, kind.ruleGateColumn(),
            backward.accumulate},
        *c.stream));
    return c.ops->causalConvBackward(
        {kept.joined, tapsOf(kind, w.conv), documents, scratch.gradMixed, scratch.gradJoined,
            tapsOf(kind, g.conv), scratch.convPartial, 0, true, backward.accumulate},
        *c.stream);
}

} // namespace

Status mixTokens(const LayerContext& context, const BlockTensors& weights,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    return context.kind->isDelta() ? runRule(context, weights, kept, scratch)
                                   : attend(context, weights, kept, scratch);
}

Status gateMixer(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept)
{
    const BlockKind& kind = *c.kind;
    if (!kind.gatesMixer())
        return {};
    if (kind.isDelta())
        return c.ops->gatedNorm({kept.attention, kept.joined, w.deltaNorm, kept.gated,
                                    kept.deltaRstd, kind.normGateColumn(), epsOf(*c.config)},
            *c.stream);
    return c.ops->gateHeads({kept.attention, kept.joined, kept.gated, static_cast<int>(kind.heads),
                                static_cast<int>(kind.kvHeads), static_cast<int>(kind.headDim)},
        *c.stream);
}

Status mixTokensBack(const LayerContext& context, const BlockTensors& weights,
    const BlockActivations& kept, const BlockScratch& scratch, const BlockBackward& backward)
{
    return context.kind->isDelta() ? runRuleBack(context, weights, kept, scratch, backward)
                                   : attendBack(context, weights, kept, scratch, backward);
}

} // namespace mr
