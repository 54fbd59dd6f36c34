#include "core/model/block_products.h"

#include "core/model/block.h"

#include <algorithm>
#include <cstddef>

namespace mr {
namespace {

bool hasCodes(std::int64_t tokens, std::int64_t in, std::int64_t out) noexcept
{
    return tokens > 0 && tokens % kCodeBlock == 0 && in % kCodeBlock == 0 && out % kCodeBlock == 0;
}

bool isInFp8(const LayerContext& c, const CodeScratch& scratch, const TensorView& x,
    const TensorView& weight) noexcept
{
    return c.trains && scratch.codes.data != nullptr &&
           hasCodes(x.dims[0], weight.dims[1], weight.dims[0]) &&
           reinterpret_cast<std::uintptr_t>(weight.data) % kCodeBlock == 0;
}

// gradWeight (+)= scales a b^T, as linearBackwardWeight() adds.
Status weightGradient(const LayerContext& c, CodeProductArgs args, const TensorView& product)
{
    if (!args.accumulate || product.data == nullptr)
        return c.ops->codeProduct(args, *c.stream);
    const TensorView sum = args.out;
    args.out = product;
    args.accumulate = false;
    MR_TRY(c.ops->codeProduct(args, *c.stream));
    return c.ops->add({sum, product, sum}, *c.stream);
}

// Cuts matrices of codes off the scratch.
class CodeCutter
{
public:
    explicit CodeCutter(const CodeScratch& scratch)
        : m_next(scratch.codes.data)
    {
    }

    TensorView matrix(DType type, std::int64_t rows, std::int64_t cols)
    {
        const TensorView view = matrixView(m_next, type, rows, cols);
        m_next += view.bytes();
        return view;
    }

private:
    std::byte* m_next;
};

TensorView scaleOf(const CodeScratch& scratch, std::int64_t operand)
{
    return scratch.scales.rows(operand * kCodeBlock, 1);
}

} // namespace

bool isInFp8(const MicroShape& shape, const ParamSlot& weight) noexcept
{
    const auto first = weight.first * static_cast<std::int64_t>(sizeOf(shape.compute));
    return shape.fp8 && hasCodes(shape.tokens(), weight.cols, weight.rows) &&
           first % kCodeBlock == 0;
}

std::int64_t blockCodeBytes(const BlockWidths& block, std::int64_t tokens) noexcept
{
    const std::int64_t hidden = block.hidden;
    const BlockKind& kind = block.kind;
    const std::int64_t pairs[][2] = {{hidden, kind.projectedColumns()},
        {kind.mixedColumns(), hidden}, {hidden, 2 * kind.intermediate}, {kind.intermediate, hidden},
        {hidden, kind.layerInput}, {kind.layerInput, hidden}};
    std::int64_t most = 0;
    for (const auto& [in, out] : pairs)
        if (hasCodes(tokens, in, out))
            most = std::max(
                {most, (tokens + out) * in, 2 * tokens * out + std::max(tokens, out) * in});
    return most;
}

Status multiply(const LayerContext& context, const CodeScratch& scratch, const LinearArgs& args)
{
    Ops& ops = *context.ops;
    Stream& stream = *context.stream;
    if (!isInFp8(context, scratch, args.x, args.weight))
        return ops.linear(args, stream);
    CodeCutter cut(scratch);
    const TensorView x = cut.matrix(DType::E4M3, args.x.dims[0], args.x.dims[1]);
    const TensorView weight = cut.matrix(DType::E4M3, args.weight.dims[0], args.weight.dims[1]);
    const TensorView xScale = scaleOf(scratch, 0);
    const TensorView weightScale = scaleOf(scratch, 1);
    MR_TRY(ops.quantize({args.x, x, {}, xScale, scratch.partial}, stream));
    MR_TRY(ops.quantize({args.weight, weight, {}, weightScale, scratch.partial}, stream));
    return ops.codeProduct({x, weight, xScale, weightScale, args.bias, args.out, false}, stream);
}

Status multiplyBack(const LayerContext& context, const CodeScratch& scratch,
    const LinearBackwardWeightArgs& weight, const LinearBackwardInputArgs& input)
{
    Ops& ops = *context.ops;
    Stream& stream = *context.stream;
    const bool isTrained = weight.gradWeight.data != nullptr;
    if (!isInFp8(context, scratch, weight.x, input.weight)) {
        if (isTrained)
            MR_TRY(ops.linearBackwardWeight(weight, stream));
        return ops.linearBackwardInput(input, stream);
    }
    const std::int64_t tokens = weight.x.dims[0];
    const std::int64_t in = weight.x.dims[1];
    const std::int64_t out = input.weight.dims[0];
    CodeCutter cut(scratch);
    const TensorView grad = cut.matrix(kGradientCode, tokens, out);
    const TensorView gradTurned = cut.matrix(kGradientCode, out, tokens);
    CodeCutter same = cut; // x, then the weight
    const TensorView x = cut.matrix(DType::E4M3, in, tokens);
    const TensorView w = same.matrix(DType::E4M3, in, out);
    const TensorView gradScale = scaleOf(scratch, 0);
    const TensorView scale = scaleOf(scratch, 1);
    if (weight.gradBias.data)
        MR_TRY(ops.biasGradient({weight.gradOut, weight.gradBias, weight.accumulate}, stream));
    const TensorView turned = isTrained ? gradTurned : TensorView{};
    MR_TRY(ops.quantize({weight.gradOut, grad, turned, gradScale, scratch.partial}, stream));
    if (isTrained) {
        MR_TRY(ops.quantize({weight.x, {}, x, scale, scratch.partial}, stream));
        MR_TRY(weightGradient(context,
            {gradTurned, x, gradScale, scale, {}, weight.gradWeight, weight.accumulate},
            weight.product));
    }
    MR_TRY(ops.quantize({input.weight, {}, w, scale, scratch.partial}, stream));
    return ops.codeProduct({grad, w, gradScale, scale, {}, input.gradX, false}, stream);
}

} // namespace mr
