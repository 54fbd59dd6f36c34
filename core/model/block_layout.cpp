// The part of layout.h that belongs to blocks: activations, scratch and what text keeps of the
// tokens before.

#include "core/model/block_products.h"
#include "core/model/carver.h"
#include "core/model/layout.h"

#include <algorithm>

namespace mr {
namespace {

void carveState(const BlockKind& kind, const MicroShape& shape, Carver& carver, TensorView& history,
    TensorView& state)
{
    const DeltaShape& delta = kind.delta;
    history = carver.matrix(shape.compute, kind.taps - 1, delta.columns());
    state = carver.cube(DType::F32, delta.valueHeads, delta.keyDim, delta.valueDim);
}

void carveAttention(
    const BlockKind& kind, const MicroShape& shape, Carver& carver, BlockActivations& out)
{
    const std::int64_t tokens = shape.tokens();
    out.qkv = carver.matrix(shape.compute, tokens, kind.qkvColumns());
    out.visibleQkv = out.qkv;
    if (kind.normsQueries()) {
        out.queries = carver.matrix(shape.compute, tokens, kind.queryColumns());
        out.queryRstd = carver.matrix(DType::F32, tokens, kind.queryNormRows());
    }
    if (kind.normsKeys()) {
        out.keys = carver.matrix(shape.compute, tokens, kind.keyColumns());
        out.keyRstd = carver.matrix(DType::F32, tokens, kind.keyNormRows());
    }
    if (kind.normsOwnValues()) {
        const bool areKeys = kind.keyValues == KeyValueSource::KeysAreValues;
        out.values = areKeys ? out.keys : carver.matrix(shape.compute, tokens, kind.keyColumns());
        out.valueRstd = carver.matrix(DType::F32, tokens, kind.kvHeads);
    }
    out.lse = carver.matrix(DType::F32, tokens, kind.heads);
}

} // namespace

std::size_t layoutKept(
    const BlockWidths& block, const MicroShape& shape, std::byte* base, BlockActivations& out)
{
    Carver carver(base);
    const BlockKind& kind = block.kind;
    const std::int64_t tokens = shape.tokens();
    if (kind.inputNorms)
        out.rstd1 = carver.vector(DType::F32, tokens);
    if (kind.gatesMixer())
        out.joined = carver.matrix(shape.compute, tokens, kind.projectedColumns());
    if (kind.isDelta()) {
        out.deltaRstd = carver.matrix(DType::F32, tokens, kind.delta.valueHeads);
        carveState(kind, shape, carver, out.history, out.state);
    } else {
        carveAttention(kind, shape, carver, out);
    }
    out.attention = carver.matrix(shape.compute, tokens, kind.mixedColumns());
    if (kind.branchNorms) {
        out.attnBranch = carver.matrix(shape.compute, tokens, block.hidden);
        out.mlpBranch = carver.matrix(shape.compute, tokens, block.hidden);
        out.attnBranchRstd = carver.vector(DType::F32, tokens);
        out.mlpBranchRstd = carver.vector(DType::F32, tokens);
    }
    if (!kind.branchNorms)
        out.mid = carver.matrix(shape.compute, tokens, block.hidden);
    if (kind.inputNorms)
        out.rstd2 = carver.vector(DType::F32, tokens);
    out.gateUp = carver.matrix(shape.compute, tokens, 2 * kind.intermediate);
    if (kind.layerInput > 0) {
        out.inputGateUp = carver.matrix(shape.compute, tokens, 2 * kind.layerInput);
        out.inputBranch = carver.matrix(shape.compute, tokens, block.hidden);
        out.inputRstd = carver.vector(DType::F32, tokens);
    }
    return carver.bytes();
}

std::size_t layoutRemade(
    const BlockWidths& block, const MicroShape& shape, std::byte* base, BlockActivations& out)
{
    Carver carver(base);
    const std::int64_t tokens = shape.tokens();
    if (block.kind.inputNorms)
        out.normed1 = carver.matrix(shape.compute, tokens, block.hidden);
    if (block.kind.gatesMixer())
        out.gated = carver.matrix(shape.compute, tokens, block.kind.mixedColumns());
    if (block.kind.branchNorms) // the branch is kept
        out.mid = carver.matrix(shape.compute, tokens, block.hidden);
    if (block.kind.inputNorms)
        out.normed2 = carver.matrix(shape.compute, tokens, block.hidden);
    out.activated = carver.matrix(shape.compute, tokens, block.kind.intermediate);
    if (block.kind.layerInput > 0) {
        out.fed = carver.matrix(shape.compute, tokens, block.hidden);
        out.inputActivated = carver.matrix(shape.compute, tokens, block.kind.layerInput);
    }
    return carver.bytes();
}

namespace {

// Partial sums of the norms of q and k: of both at once, or of one after the other.
TensorView headPartial(const BlockKind& kind, std::int64_t tokens, Carver& carver)
{
    const bool areRows = kind.normsWholeRows();
    return carver.matrix(DType::F32,
        areRows ? normPartialRows(tokens) : headNormPartials(tokens, kind.heads, kind.kvHeads),
        kind.queryNormLength());
}

void carveAttentionScratch(
    const BlockKind& kind, const MicroShape& shape, Carver& carver, BlockScratch& out)
{
    const std::int64_t tokens = shape.tokens();
    out.gradQkv = carver.matrix(shape.compute, tokens, kind.qkvColumns());
    if (kind.normsQueries())
        out.headPartial = headPartial(kind, tokens, carver);
    out.delta = carver.matrix(DType::F32, tokens, kind.heads);
}

void carveDeltaScratch(
    const BlockKind& kind, const MicroShape& shape, Carver& carver, BlockScratch& out)
{
    const DeltaShape& delta = kind.delta;
    const std::int64_t tokens = shape.tokens();
    const std::int64_t blocks = recurrentBlocks(tokens);
    for (TensorView* view : {&out.mixed, &out.gradMixed})
        *view = carver.matrix(shape.compute, tokens, delta.columns());
    out.gradDelta = carver.matrix(shape.compute, tokens, delta.valueColumns());
    out.borders =
        carver.tensor(DType::F32, {blocks, delta.valueHeads, delta.keyDim, delta.valueDim});
    out.deltaScratch = carver.vector(DType::F32, deltaScratch(tokens, delta));
    out.deltaPartial = carver.cube(DType::F32, kDeltaPlanes, tokens, delta.valueHeads);
    out.convPartial = carver.matrix(DType::F32, blocks, delta.columns() * kind.taps);
    out.headPartial =
        carver.matrix(DType::F32, recurrentBlocks(tokens * delta.valueHeads), delta.valueDim);
}

void carveAdapter(const MicroShape& shape, Carver& carver, AdapterScratch& out)
{
    const std::int64_t tokens = shape.tokens();
    if (shape.adapterRanks > 0)
        for (TensorView* view : {&out.hidden, &out.gradHidden})
            *view = carver.matrix(shape.compute, tokens, shape.adapterRanks);
    if (shape.dropoutColumns > 0)
        out.dropped = carver.matrix(shape.compute, tokens, shape.dropoutColumns);
    if (shape.doraColumns > 0) {
        out.product = carver.matrix(shape.compute, tokens, shape.doraColumns);
        out.norms = carver.vector(DType::F32, shape.doraColumns);
        out.factors = carver.vector(DType::F32, shape.doraColumns);
    }
}

} // namespace

std::size_t layoutScratch(
    const BlockWidths& block, const MicroShape& shape, std::byte* base, BlockScratch& out)
{
    Carver carver(base);
    const BlockKind& kind = block.kind;
    const std::int64_t tokens = shape.tokens();
    out.branch = carver.matrix(shape.compute, tokens, block.hidden);
    out.gradNormed = carver.matrix(shape.compute, tokens, block.hidden);
    out.gradActivated = carver.matrix(shape.compute, tokens, kind.intermediate);
    out.gradAttention = carver.matrix(shape.compute, tokens, kind.mixedColumns());
    if (kind.joinsProduct())
        out.gradJoined = carver.matrix(shape.compute, tokens, kind.projectedColumns());
    if (kind.layerInput > 0)
        out.inputGate = carver.matrix(shape.compute, tokens, kind.layerInput);
    if (kind.isDelta())
        carveDeltaScratch(kind, shape, carver, out);
    else
        carveAttentionScratch(kind, shape, carver, out);
    out.normPartial = carver.matrix(DType::F32, normPartialRows(tokens), block.hidden);
    if (const std::int64_t bytes = shape.fp8 ? blockCodeBytes(block, tokens) : 0; bytes > 0) {
        out.fp8.codes = carver.vector(DType::U8, bytes);
        out.fp8.scales = carver.vector(DType::F32, 2 * kCodeBlock);
        out.fp8.partial = carver.vector(DType::I32, kQuantizePartials);
    }
    carveAdapter(shape, carver, out.adapter);
    return carver.bytes();
}

std::size_t layoutInputs(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, InputScratch& out)
{
    if (config.layerInput == 0)
        return 0;
    Carver carver(base);
    const std::int64_t rows = shape.tokens() * config.layers;
    out.x = carver.matrix(shape.compute, shape.tokens(), config.hidden);
    for (TensorView* view : {&out.projected, &out.normed})
        *view = carver.matrix(shape.compute, shape.tokens(), config.inputColumns());
    out.rstd = carver.vector(DType::F32, rows);
    out.normPartial = carver.matrix(DType::F32, normPartialRows(rows), config.layerInput);
    return carver.bytes();
}

std::size_t layoutShared(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, SharedViews& out)
{
    Carver carver(base);
    for (std::size_t i = 0; i < config.keyGivers.size(); ++i) {
        const std::int64_t columns = 2 * config.kindOf(config.keyGivers[i]).keyColumns();
        out.keys[i].keyValues = carver.matrix(shape.compute, shape.tokens(), columns);
        out.keys[i].gradient = carver.matrix(DType::F32, shape.tokens(), columns);
    }
    if (config.layerInput > 0)
        out.inputs = carver.matrix(shape.compute, shape.tokens(), config.inputColumns());
    return carver.bytes();
}

BlockBytes blockBytes(const ModelConfig& config, const MicroShape& shape)
{
    BlockBytes most;
    InputScratch inputs;
    most.scratch = layoutInputs(config, shape, nullptr, inputs);
    for (const BlockKind& kind : config.kinds()) {
        BlockActivations activations;
        BlockScratch scratch;
        const BlockWidths block{kind, config.hidden};
        most.kept = std::max(most.kept, layoutKept(block, shape, nullptr, activations));
        most.remade = std::max(most.remade, layoutRemade(block, shape, nullptr, activations));
        most.scratch = std::max(most.scratch, layoutScratch(block, shape, nullptr, scratch));
    }
    return most;
}

std::size_t layoutCache(const ModelConfig& config, const MicroShape& shape, std::byte* base,
    std::vector<BlockCache>& out)
{
    Carver carver(base);
    out.assign(static_cast<std::size_t>(config.layers), {});
    for (std::int64_t block = 0; block < config.layers; ++block) {
        const BlockKind& kind = config.kindOf(block);
        BlockCache& cache = out[static_cast<std::size_t>(block)];
        if (kind.isDelta())
            carveState(kind, shape, carver, cache.history, cache.state);
        else
            cache.rows = carver.matrix(shape.compute, shape.seqLen, kind.qkvColumns());
    }
    return carver.bytes();
}

} // namespace mr
