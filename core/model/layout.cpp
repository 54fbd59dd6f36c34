#include "core/model/layout.h"

#include "core/device/ops.h"
#include "core/model/carver.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <cmath>

namespace mr {
namespace {

// Logits of a chunk, F32. A chunk of n rows does n operations for each byte it reads of the head's
// matrix, and cards do some 180 in that time (data sheets): 262,144 words leave 256 rows.
constexpr std::int64_t kLogitsBytes = std::int64_t{256} << 20;
// At least as much gradient of logits is kept for one product.
constexpr std::int64_t kLogitsGradientBytes = std::int64_t{1} << 30;
constexpr std::int64_t kChunkStep = 16; // rows
constexpr std::uint16_t kOneInBf16 = 0x3F80;

// `tokens` in as few parts of at most `most` rows as there may be, of equal rows: a multiple of
// `step`, as `most` is.
std::int64_t evenRows(std::int64_t tokens, std::int64_t most, std::int64_t step)
{
    const auto parts = [](std::int64_t all, std::int64_t of) { return (all + of - 1) / of; };
    const std::int64_t even = parts(tokens, parts(tokens, most));
    return std::min(tokens, parts(even, step) * step);
}

// factor(position) scales cos and sin.
template <typename Factor>
void fillTables(const RopeFrequencies& rope, Factor factor, const TensorView& cosTable,
    const TensorView& sinTable)
{
    const std::int64_t positions = cosTable.dims[0];
    const std::int64_t half = cosTable.dims[1];
    auto* cosines = cosTable.as<float>();
    auto* sines = sinTable.as<float>();
    for (std::int64_t p = 0; p < positions; ++p) {
        const double scale = rope.attentionFactor * factor(p);
        for (std::int64_t i = 0; i < half; ++i) {
            const float inverse = rope.inverse[static_cast<std::size_t>(i)];
            const auto angle = static_cast<double>(static_cast<float>(p) * inverse);
            cosines[p * half + i] = static_cast<float>(scale * std::cos(angle));
            sines[p * half + i] = static_cast<float>(scale * std::sin(angle));
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
    if (const std::int64_t window = config.window(); window > 0 && window < shape.seqLen)
        out.windowFrom = carver.vector(DType::I32, shape.tokens());
    if (shape.tokenRows > 0)
        for (TensorView* view : {&out.rowIds, &out.rowOrder})
            *view = carver.vector(DType::I32, shape.tokens());
    if (config.inputsAreOnHost()) // last: answers copy no more of them than they need
        out.inputRows = carver.matrix(shape.compute, shape.tokens(), config.inputColumns());
    out.mostKeys = shape.seqLen;
    return carver.bytes();
}

std::size_t layoutConstants(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, ModelConstants& out)
{
    Carver carver(base);
    for (std::size_t r = 0; r < config.ropes.size(); ++r) {
        const Rope& rope = config.ropes[r];
        RopeTables& tables = out.ropes[r];
        const std::int64_t half = config.turnedColumns(rope) / 2;
        for (TensorView* view : {&tables.cosines, &tables.sines})
            *view = carver.matrix(DType::F32, shape.seqLen, half);
        if (queryFactor(rope.scaling, shape.seqLen - 1) != 1.0)
            for (TensorView* view : {&tables.queryCosines, &tables.querySines})
                *view = carver.matrix(DType::F32, shape.seqLen, half);
    }
    std::int64_t unweighted = 0; // columns of the longest head that a norm without weight reads
    for (const BlockKind& kind : config.kinds())
        unweighted = std::max(unweighted, kind.normsOwnValues() ? kind.headDim : 0);
    if (unweighted > 0)
        out.ones = carver.vector(shape.compute, unweighted);
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
    for (std::size_t r = 0; r < config.ropes.size(); ++r) {
        const Rope& rope = config.ropes[r];
        const RopeTables& tables = host.ropes[r];
        const RopeFrequencies turns = ropeFrequencies(rope.scaling, config.shapeOf(rope), longest);
        fillTables(
            turns, [](std::int64_t) { return 1.0; }, tables.cosines, tables.sines);
        if (tables.queryCosines.data != nullptr)
            fillTables(
                turns, [&](std::int64_t p) { return queryFactor(rope.scaling, p); },
                tables.queryCosines, tables.querySines);
    }
    for (std::int64_t i = 0; host.ones.data != nullptr && i < host.ones.count(); ++i)
        if (host.ones.dtype == DType::BF16)
            host.ones.as<std::uint16_t>()[i] = kOneInBf16;
        else
            host.ones.as<float>()[i] = 1.0F;
}

void fillWindow(const ModelConfig& config, const BatchViews& host)
{
    if (host.windowFrom.data == nullptr)
        return;
    const auto* from = host.visibleFrom.as<const std::int32_t>();
    auto* windowed = host.windowFrom.as<std::int32_t>();
    const std::int64_t window = config.window();
    for (std::int64_t t = 0; t < host.visibleFrom.dims[0]; ++t)
        windowed[t] = std::max(from[t], static_cast<std::int32_t>(t - window + 1));
}

BatchViews batchOfBlock(const ModelConfig& config, std::int64_t block, const BatchViews& batch)
{
    BatchViews seen = batch;
    const BlockKind* kind = config.findKind(block);
    if (batch.windowFrom.data != nullptr && kind != nullptr && kind->window > 0) {
        seen.visibleFrom = batch.windowFrom;
        seen.mostKeys = kind->window;
    }
    return seen;
}

RopeTables ropeOfBlock(
    const ModelConfig& config, std::int64_t block, const ModelConstants& constants)
{
    const BlockKind* kind = config.findKind(block);
    if (kind == nullptr || !kind->turns)
        return {};
    return constants.ropes[static_cast<std::size_t>(kind->rope)];
}

} // namespace mr
