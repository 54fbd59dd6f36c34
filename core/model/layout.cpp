#include "core/model/layout.h"

#include "core/device/ops.h"
#include "core/model/block_products.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <cmath>

namespace mr {
namespace {

// Cuts a range into aligned tensors; with a null base it only counts.
class Carver
{
public:
    explicit Carver(std::byte* base)
        : m_base(base)
    {
    }

    TensorView matrix(DType dtype, std::int64_t rows, std::int64_t cols)
    {
        return place(matrixView(nullptr, dtype, rows, cols));
    }

    TensorView vector(DType dtype, std::int64_t count)
    {
        return place(vectorView(nullptr, dtype, count));
    }

    std::size_t bytes() const { return m_offset; }

private:
    static constexpr std::size_t kAlign =
        256; // a CUDA vector load or a cache line, whichever is larger

    TensorView place(TensorView view)
    {
        view.data = m_base ? m_base + m_offset : nullptr;
        m_offset += (view.bytes() + kAlign - 1) / kAlign * kAlign;
        return view;
    }

    std::byte* m_base;
    std::size_t m_offset = 0;
};

// Logits of a chunk, F32. A chunk of n rows does n operations for each byte it reads of the head's
// matrix, and cards do some 180 in that time (data sheets): 262,144 words leave 256 rows.
constexpr std::int64_t kLogitsBytes = std::int64_t{256} << 20;
// At least as much gradient of logits is kept for one product.
constexpr std::int64_t kLogitsGradientBytes = std::int64_t{1} << 30;
constexpr std::int64_t kChunkStep = 16; // rows

// `tokens` in as few parts of at most `most` rows as there may be, of equal rows: a multiple of
// `step`, as `most` is.
std::int64_t evenRows(std::int64_t tokens, std::int64_t most, std::int64_t step)
{
    const auto parts = [](std::int64_t all, std::int64_t of) { return (all + of - 1) / of; };
    const std::int64_t even = parts(tokens, parts(tokens, most));
    return std::min(tokens, parts(even, step) * step);
}

std::int64_t normPartialRows(std::int64_t tokens)
{
    return (tokens + kNormRowBlock - 1) / kNormRowBlock;
}

void fillTables(const RopeFrequencies& rope, const TensorView& cosTable, const TensorView& sinTable)
{
    const std::int64_t positions = cosTable.dims[0];
    const std::int64_t half = cosTable.dims[1];
    auto* cosines = cosTable.as<float>();
    auto* sines = sinTable.as<float>();
    for (std::int64_t i = 0; i < half; ++i) {
        const float inverse = rope.inverse[static_cast<std::size_t>(i)];
        for (std::int64_t p = 0; p < positions; ++p) {
            const auto angle = static_cast<double>(static_cast<float>(p) * inverse);
            cosines[p * half + i] = static_cast<float>(rope.attentionFactor * std::cos(angle));
            sines[p * half + i] = static_cast<float>(rope.attentionFactor * std::sin(angle));
        }
    }
}

} // namespace

std::int64_t headChunkRows(std::int64_t tokens, std::int64_t vocab) noexcept
{
    const std::int64_t fitting = kLogitsBytes / (4 * vocab) / kChunkStep * kChunkStep;
    return evenRows(tokens, std::max(fitting, kChunkStep), kChunkStep);
}

std::int64_t headProductRows(const ModelConfig& config, const MicroShape& shape) noexcept
{
    const auto row = config.vocab * static_cast<std::int64_t>(sizeOf(shape.compute));
    // Two products of several micro-batches need half the gradient and a matrix for their sum.
    const std::int64_t matrices = shape.microBatches > 1 ? 2 : 1;
    const std::int64_t matrix = 4 * config.vocab * config.hidden;
    const std::int64_t fitting = std::max(kLogitsGradientBytes, matrices * matrix) / row;
    const std::int64_t chunk = headChunkRows(shape.tokens(), config.vocab);
    if (fitting >= shape.tokens())
        return shape.tokens();
    return evenRows(shape.tokens(), std::max(fitting / chunk, std::int64_t{1}) * chunk, chunk);
}

std::int64_t normBlockCount(std::int64_t elements) noexcept
{
    return (elements + kCutElements - 1) / kCutElements;
}

std::int64_t normChunkCount(std::int64_t blocks) noexcept
{
    constexpr std::int64_t kChunk = 1024; // as in NormJoinArgs
    return (blocks + kChunk - 1) / kChunk;
}

std::size_t layoutKept(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, BlockActivations& out)
{
    Carver carver(base);
    const std::int64_t tokens = shape.tokens();
    out.rstd1 = carver.vector(DType::F32, tokens);
    out.qkv = carver.matrix(shape.compute, tokens, config.qkvColumns());
    out.visibleQkv = out.qkv;
    if (config.queryKeyNorm) {
        out.queries = carver.matrix(shape.compute, tokens, config.attentionColumns());
        out.keys = carver.matrix(shape.compute, tokens, config.kvHeads * config.headDim);
        out.queryRstd = carver.matrix(DType::F32, tokens, config.heads);
        out.keyRstd = carver.matrix(DType::F32, tokens, config.kvHeads);
    }
    out.attention = carver.matrix(shape.compute, tokens, config.attentionColumns());
    out.lse = carver.matrix(DType::F32, tokens, config.heads);
    if (config.branchNorms) {
        out.attnBranch = carver.matrix(shape.compute, tokens, config.hidden);
        out.mlpBranch = carver.matrix(shape.compute, tokens, config.hidden);
        out.attnBranchRstd = carver.vector(DType::F32, tokens);
        out.mlpBranchRstd = carver.vector(DType::F32, tokens);
    }
    if (!config.branchNorms)
        out.mid = carver.matrix(shape.compute, tokens, config.hidden);
    out.rstd2 = carver.vector(DType::F32, tokens);
    out.gateUp = carver.matrix(shape.compute, tokens, 2 * config.intermediate);
    return carver.bytes();
}

std::size_t layoutRemade(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, BlockActivations& out)
{
    Carver carver(base);
    const std::int64_t tokens = shape.tokens();
    out.normed1 = carver.matrix(shape.compute, tokens, config.hidden);
    if (config.branchNorms) // the branch is kept
        out.mid = carver.matrix(shape.compute, tokens, config.hidden);
    out.normed2 = carver.matrix(shape.compute, tokens, config.hidden);
    out.activated = carver.matrix(shape.compute, tokens, config.intermediate);
    return carver.bytes();
}

std::size_t layoutActivations(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, BlockActivations& out)
{
    const std::size_t kept = layoutKept(config, shape, base, out);
    return kept + layoutRemade(config, shape, base ? base + kept : nullptr, out);
}

std::size_t layoutScratch(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, BlockScratch& out)
{
    Carver carver(base);
    const std::int64_t tokens = shape.tokens();
    out.branch = carver.matrix(shape.compute, tokens, config.hidden);
    out.gradNormed = carver.matrix(shape.compute, tokens, config.hidden);
    out.gradActivated = carver.matrix(shape.compute, tokens, config.intermediate);
    out.gradAttention = carver.matrix(shape.compute, tokens, config.attentionColumns());
    out.gradQkv = carver.matrix(shape.compute, tokens, config.qkvColumns());
    if (config.queryKeyNorm)
        out.headPartial = carver.matrix(
            DType::F32, headNormPartials(tokens, config.heads, config.kvHeads), config.headDim);
    out.delta = carver.matrix(DType::F32, tokens, config.heads);
    out.normPartial = carver.matrix(DType::F32, normPartialRows(tokens), config.hidden);
    if (const std::int64_t bytes = shape.fp8 ? blockCodeBytes(config, tokens) : 0; bytes > 0) {
        out.fp8.codes = carver.vector(DType::U8, bytes);
        out.fp8.scales = carver.vector(DType::F32, 2 * kCodeBlock);
        out.fp8.partial = carver.vector(DType::I32, kQuantizePartials);
    }
    if (shape.adapterRanks > 0)
        for (TensorView* view : {&out.adapter.hidden, &out.adapter.gradHidden})
            *view = carver.matrix(shape.compute, tokens, shape.adapterRanks);
    if (shape.dropoutColumns > 0)
        out.adapter.dropped = carver.matrix(shape.compute, tokens, shape.dropoutColumns);
    if (shape.doraColumns > 0) {
        out.adapter.product = carver.matrix(shape.compute, tokens, shape.doraColumns);
        out.adapter.norms = carver.vector(DType::F32, shape.doraColumns);
        out.adapter.factors = carver.vector(DType::F32, shape.doraColumns);
    }
    return carver.bytes();
}

HeadParts headParts(const ModelConfig& config, const MicroShape& shape) noexcept
{
    const bool isOne = shape.headPart == 0 || config.vocab <= shape.headPart;
    return {config.vocab, isOne ? config.vocab : shape.headPart};
}

namespace {

// Logits and their gradient in several parts. Logits of one row have a place too, for a sample.
void carveLogits(const ModelConfig& config, const MicroShape& shape, bool trains, Carver& carver,
    HeadScratch& out)
{
    const std::int64_t columns = out.keepsLogits ? config.vocab : out.parts.rows;
    out.logits = carver.vector(DType::F32, std::max(out.chunk * columns, config.vocab));
    if (trains)
        out.gradLogits = carver.matrix(shape.compute, shape.tokens(), columns);
}

void carveHeadScratch(
    const ModelConfig& config, const MicroShape& shape, Carver& carver, HeadScratch& out)
{
    out.parts = headParts(config, shape);
    out.chunk = headChunkRows(shape.tokens(), config.vocab);
    out.gradNormed = carver.matrix(shape.compute, shape.tokens(), config.hidden);
    out.normPartial = carver.matrix(DType::F32, normPartialRows(shape.tokens()), config.hidden);
}

} // namespace

std::size_t layoutHeadRows(
    const ModelConfig& config, const MicroShape& shape, bool trains, std::byte* base, HeadRows& out)
{
    Carver carver(base);
    const std::int64_t tokens = shape.tokens();
    const HeadParts parts = headParts(config, shape);
    out.normed = carver.matrix(shape.compute, tokens, config.hidden);
    for (TensorView* view : {&out.rstd, &out.losses})
        *view = carver.vector(DType::F32, tokens);
    if (!parts.areSeveral())
        return carver.bytes();
    for (TensorView* view : {&out.tops, &out.sums})
        *view = carver.matrix(DType::F32, tokens, parts.count());
    for (TensorView* view : {&out.targetLogits, &out.top, &out.total})
        *view = carver.vector(DType::F32, tokens);
    if (trains)
        out.gradSum = carver.matrix(DType::F32, tokens, config.hidden);
    return carver.bytes();
}

std::size_t layoutHeadTile(const ModelConfig& config, const MicroShape& shape, bool trains,
    std::byte* base, HeadScratch& out)
{
    Carver carver(base);
    carveHeadScratch(config, shape, carver, out);
    carveLogits(config, shape, trains, carver, out);
    return carver.bytes();
}

std::size_t layoutHead(const ModelConfig& config, const MicroShape& shape, bool trains,
    std::byte* base, HeadScratch& out)
{
    const std::size_t rows = layoutHeadRows(config, shape, trains, base, out.rows);
    Carver carver(base ? base + rows : nullptr);
    carveHeadScratch(config, shape, carver, out);
    const std::int64_t products = headProductRows(config, shape);
    if (out.parts.areSeveral()) {
        out.keepsLogits = trains && products == shape.tokens();
        carveLogits(config, shape, trains, carver, out);
        return rows + carver.bytes();
    }
    if (trains)
        out.gradLogits = carver.matrix(shape.compute, products, config.vocab);
    out.logits = trains && shape.compute == DType::F32
                     ? out.gradLogits.rows(0, out.chunk)
                     : carver.matrix(DType::F32, out.chunk, config.vocab);
    return rows + carver.bytes();
}

std::size_t layoutBatch(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, BatchViews& out)
{
    Carver carver(base);
    for (TensorView* view : {&out.ids, &out.targets, &out.positions, &out.visibleFrom, &out.order})
        *view = carver.vector(DType::I32, shape.tokens());
    if (config.window > 0 && config.window < shape.seqLen)
        out.windowFrom = carver.vector(DType::I32, shape.tokens());
    if (shape.tokenRows > 0)
        for (TensorView* view : {&out.rowIds, &out.rowOrder})
            *view = carver.vector(DType::I32, shape.tokens());
    out.mostKeys = shape.seqLen;
    return carver.bytes();
}

std::size_t layoutConstants(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, ModelConstants& out)
{
    Carver carver(base);
    const std::int64_t half = config.turnedColumns() / 2;
    out.cosTable = carver.matrix(DType::F32, shape.seqLen, half);
    out.sinTable = carver.matrix(DType::F32, shape.seqLen, half);
    if (config.localTheta > 0.0) {
        out.localCosTable = carver.matrix(DType::F32, shape.seqLen, half);
        out.localSinTable = carver.matrix(DType::F32, shape.seqLen, half);
    }
    return carver.bytes();
}

TensorView ScalarViews::scalarsOf(GroupId group) const
{
    static_assert(kGroupScalarBytes == sizeof(StepScalars));
    constexpr auto kEach = static_cast<std::int64_t>(kGroupScalarBytes);
    return groupScalars.rows(kEach * group.value, kEach);
}

TensorView ScalarViews::chunksFor(const TensorView& blockSums) const
{
    return normChunks.rows(0, normChunkCount(blockSums.dims[0]));
}

std::size_t layoutScalars(
    const ParamTable& table, const MicroShape& shape, std::byte* base, ScalarViews& out)
{
    Carver carver(base);
    std::int64_t blocks = 0;
    for (const ParamGroup& group : table.groups)
        blocks += normBlockCount(group.elements);
    out.losses = carver.vector(DType::F64, shape.microBatches);
    out.scalars = carver.vector(DType::U8, sizeof(StepScalars));
    out.sentBytes = carver.bytes();
    out.groupScalars = carver.vector(
        DType::U8, static_cast<std::int64_t>(kGroupScalarBytes * table.groups.size()));
    out.normBlocks = carver.vector(DType::F32, blocks);
    out.normChunks = carver.vector(DType::F64, normChunkCount(blocks));
    return carver.bytes();
}

std::size_t headProductBytes(const ModelConfig& config, const MicroShape& shape) noexcept
{
    const bool isOneProduct =
        headParts(config, shape).areSeveral() || headProductRows(config, shape) == shape.tokens();
    if (shape.microBatches == 1 || isOneProduct)
        return 0;
    return static_cast<std::size_t>(config.vocab * config.hidden) * sizeof(float);
}

void fillConstants(const ModelConfig& config, std::int64_t longest, const ModelConstants& host)
{
    fillTables(ropeFrequencies(config.ropeScaling, config.ropeShape(), longest), host.cosTable,
        host.sinTable);
    if (host.localCosTable.data != nullptr)
        fillTables(ropeFrequencies({}, config.localRopeShape(), longest), host.localCosTable,
            host.localSinTable);
}

void fillWindow(const ModelConfig& config, const BatchViews& host)
{
    if (host.windowFrom.data == nullptr)
        return;
    const auto* from = host.visibleFrom.as<const std::int32_t>();
    auto* windowed = host.windowFrom.as<std::int32_t>();
    for (std::int64_t t = 0; t < host.visibleFrom.dims[0]; ++t)
        windowed[t] = std::max(from[t], static_cast<std::int32_t>(t - config.window + 1));
}

BatchViews batchOfBlock(const ModelConfig& config, std::int64_t block, const BatchViews& batch)
{
    BatchViews seen = batch;
    if (batch.windowFrom.data != nullptr && config.isWindowed(block)) {
        seen.visibleFrom = batch.windowFrom;
        seen.mostKeys = config.window;
    }
    return seen;
}

ModelConstants constantsOfBlock(
    const ModelConfig& config, std::int64_t block, const ModelConstants& constants)
{
    ModelConstants seen = constants;
    if (constants.localCosTable.data != nullptr && config.isWindowed(block)) {
        seen.cosTable = constants.localCosTable;
        seen.sinTable = constants.localSinTable;
    }
    return seen;
}

} // namespace mr
