#include "core/model/layout.h"

#include "core/device/ops.h"
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

constexpr std::int64_t kLogitsBytes = std::int64_t{128} << 20;

std::int64_t normPartialRows(std::int64_t tokens)
{
    return (tokens + kNormRowBlock - 1) / kNormRowBlock;
}

// A 1-D weight is a row.
std::vector<WeightShape> weightShapes(const ParamGroup& group)
{
    std::vector<WeightShape> weights;
    for (const ParamSlot& slot : group.paramSlots) {
        const bool isVector = slot.rank == 1;
        weights.push_back({slot.first, isVector ? 1 : slot.rows,
            isVector ? slot.rows * slot.cols : slot.cols, isVector});
    }
    return weights;
}

double matrixFlops(const ParamGroup& group, std::int64_t tokens)
{
    double flops = 0.0;
    for (const ParamSlot& slot : group.paramSlots)
        if (slot.rank == 2 && slot.kind != SlotKind::Embedding)
            flops += 2.0 * static_cast<double>(slot.count()) * static_cast<double>(tokens);
    return flops;
}

} // namespace

std::int64_t headChunkRows(std::int64_t tokens, std::int64_t vocab) noexcept
{
    const std::int64_t fitting = kLogitsBytes / (4 * vocab) / 16 * 16;
    return std::min(tokens, std::max<std::int64_t>(fitting, 16));
}

std::int64_t normBlockCount(std::int64_t elements) noexcept
{
    return (elements + kCutElements - 1) / kCutElements;
}

std::size_t layoutActivations(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, BlockActivations& out)
{
    Carver carver(base);
    const std::int64_t tokens = shape.tokens();
    out.normed1 = carver.matrix(shape.compute, tokens, config.hidden);
    out.rstd1 = carver.vector(DType::F32, tokens);
    out.qkv = carver.matrix(shape.compute, tokens, config.qkvColumns());
    out.visibleQkv = out.qkv;
    out.attention = carver.matrix(shape.compute, tokens, config.attentionColumns());
    out.lse = carver.matrix(DType::F32, tokens, config.heads);
    out.mid = carver.matrix(shape.compute, tokens, config.hidden);
    out.normed2 = carver.matrix(shape.compute, tokens, config.hidden);
    out.rstd2 = carver.vector(DType::F32, tokens);
    out.gateUp = carver.matrix(shape.compute, tokens, 2 * config.intermediate);
    out.activated = carver.matrix(shape.compute, tokens, config.intermediate);
    return carver.bytes();
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
    out.delta = carver.matrix(DType::F32, tokens, config.heads);
    out.normPartial = carver.matrix(DType::F32, normPartialRows(tokens), config.hidden);
    return carver.bytes();
}

std::size_t layoutHead(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, HeadScratch& out)
{
    Carver carver(base);
    const std::int64_t tokens = shape.tokens();
    const std::int64_t rows = headChunkRows(tokens, config.vocab);
    out.normed = carver.matrix(shape.compute, tokens, config.hidden);
    out.rstd = carver.vector(DType::F32, tokens);
    out.gradNormed = carver.matrix(shape.compute, tokens, config.hidden);
    out.losses = carver.vector(DType::F32, tokens);
    out.logits = carver.matrix(DType::F32, rows, config.vocab);
    out.gradLogits =
        shape.compute == DType::F32 ? out.logits : carver.matrix(shape.compute, rows, config.vocab);
    out.normPartial = carver.matrix(DType::F32, normPartialRows(tokens), config.hidden);
    return carver.bytes();
}

std::size_t layoutBatch(const MicroShape& shape, std::byte* base, BatchViews& out)
{
    Carver carver(base);
    for (TensorView* view : {&out.ids, &out.targets, &out.positions, &out.visibleFrom, &out.order})
        *view = carver.vector(DType::I32, shape.tokens());
    return carver.bytes();
}

std::size_t layoutRope(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, RopeTables& out)
{
    Carver carver(base);
    out.cosTable = carver.matrix(DType::F32, shape.seqLen, config.headDim / 2);
    out.sinTable = carver.matrix(DType::F32, shape.seqLen, config.headDim / 2);
    return carver.bytes();
}

TensorView ScalarViews::scalarsOf(GroupId group) const
{
    static_assert(kGroupScalarBytes == sizeof(StepScalars));
    constexpr auto kEach = static_cast<std::int64_t>(kGroupScalarBytes);
    return groupScalars.rows(kEach * group.value, kEach);
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
    return carver.bytes();
}

std::size_t headProductBytes(const ModelConfig& config, const MicroShape& shape) noexcept
{
    const bool oneChunk = headChunkRows(shape.tokens(), config.vocab) == shape.tokens();
    if (shape.microBatches == 1 || oneChunk)
        return 0;
    return static_cast<std::size_t>(config.vocab * config.hidden) * sizeof(float);
}

void fillRopeTables(const ModelConfig& config, const RopeTables& host)
{
    const std::int64_t positions = host.cosTable.dims[0];
    const std::int64_t half = config.headDim / 2;
    auto* cosines = host.cosTable.as<float>();
    auto* sines = host.sinTable.as<float>();
    for (std::int64_t i = 0; i < half; ++i) {
        const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.headDim);
        const float inverse =
            1.0F / static_cast<float>(std::pow(config.ropeTheta, static_cast<double>(exponent)));
        for (std::int64_t p = 0; p < positions; ++p) {
            const auto angle = static_cast<double>(static_cast<float>(p) * inverse);
            cosines[p * half + i] = static_cast<float>(std::cos(angle));
            sines[p * half + i] = static_cast<float>(std::sin(angle));
        }
    }
}

ModelShape modelShape(const ModelConfig& config, const ParamTable& table, const MicroShape& shape)
{
    ModelShape out;
    const std::int64_t tokens = shape.tokens();
    const auto last = table.groups.size() - 1;
    for (std::size_t g = 0; g < table.groups.size(); ++g) {
        const ParamGroup& group = table.groups[g];
        double flops = matrixFlops(group, tokens);
        if (g == last && config.tiedEmbedding) // its matrix is in group 0
            flops += 2.0 * static_cast<double>(config.vocab * config.hidden * tokens);
        if (g != 0 && g != last) // scores and values, each half of T x T
            flops += 2.0 * static_cast<double>(config.attentionColumns() * shape.seqLen * tokens);
        out.groups.push_back({group.name, group.elements, flops, 2.0 * flops, weightShapes(group)});
    }
    out.tiedHead = config.tiedEmbedding;
    out.secondAccumulatorElements = config.tiedEmbedding ? config.vocab * config.hidden : 0;
    out.boundaryBytes = matrixView(nullptr, shape.compute, tokens, config.hidden).bytes();
    BlockActivations activations;
    BlockScratch scratch;
    HeadScratch head;
    BatchViews batch;
    RopeTables rope;
    ScalarViews scalars;
    out.savedBytesPerBlock = layoutActivations(config, shape, nullptr, activations);
    out.backwardScratchBytes = layoutScratch(config, shape, nullptr, scratch);
    out.headScratchBytes = layoutHead(config, shape, nullptr, head);
    out.headProductBytes = headProductBytes(config, shape);
    out.batchBytes = layoutBatch(shape, nullptr, batch);
    out.constantBytes = layoutRope(config, shape, nullptr, rope);
    out.scalarBytes = layoutScalars(table, shape, nullptr, scalars);
    out.sentScalarBytes = scalars.sentBytes;
    return out;
}

} // namespace mr
