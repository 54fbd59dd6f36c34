#include "core/prove/run_products.h"

#include "core/model/block_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace mr {
namespace {

struct BlockProduct {
    SlotKind weight;
    SlotKind bias;
    const char* place;
};

constexpr std::array kBlockProducts = {BlockProduct{SlotKind::Qkv, SlotKind::QkvBias, "qkv"},
    BlockProduct{SlotKind::AttnOut, SlotKind::AttnOutBias, "attention out"},
    BlockProduct{SlotKind::GateUp, SlotKind::GateUpBias, "gate-up"},
    BlockProduct{SlotKind::Down, SlotKind::DownBias, "down"}};

std::size_t tensorBytes(DType type, std::int64_t rows, std::int64_t cols) noexcept
{
    const std::size_t bytes = matrixView(nullptr, type, rows, cols).bytes();
    return (bytes + kProductAlign - 1) / kProductAlign * kProductAlign;
}

// Lengths of the pieces of `rows` that `all` is cut into: whole ones, and a rest.
std::vector<std::int64_t> piecesOf(std::int64_t all, std::int64_t rows)
{
    std::vector<std::int64_t> pieces{rows};
    if (all % rows != 0)
        pieces.push_back(all % rows);
    return pieces;
}

bool isAlike(const RunProduct& a, const RunProduct& b) noexcept
{
    return a.kind == b.kind && a.tokens == b.tokens && a.in == b.in && a.out == b.out &&
           a.compute == b.compute && a.result == b.result && a.isFp8 == b.isFp8 &&
           a.hasBias == b.hasBias;
}

// Keeps each shape once.
class ProductList
{
public:
    void add(const RunProduct& product)
    {
        const auto known = std::find_if(m_all.begin(), m_all.end(),
            [&](const RunProduct& other) { return isAlike(other, product); });
        if (known == m_all.end())
            m_all.push_back(product);
        else
            known->mayAddUp = known->mayAddUp || product.mayAddUp;
    }

    // The product of the forward pass, whose result is of this type.
    void addForward(RunProduct product, DType result)
    {
        product.result = result;
        add(product);
    }

    // Both of the backward pass; the gradient of weights is of this type.
    void addBackward(RunProduct product, DType gradient, bool mayAddUp)
    {
        product.hasBias = false;
        product.result = product.compute;
        product.kind = ProductKind::InputGradient;
        add(product);
        product.result = gradient;
        product.kind = ProductKind::WeightGradient;
        product.mayAddUp = mayAddUp;
        add(product);
    }

    std::vector<RunProduct> take() { return std::move(m_all); }

private:
    std::vector<RunProduct> m_all;
};

// Logits by chunks, gradients by larger ones (head.cpp).
void addHead(const ModelConfig& config, const MicroShape& shape, ProductList& list)
{
    RunProduct product;
    product.place = "head";
    product.compute = shape.compute;
    product.in = config.hidden;
    product.out = config.vocab;
    const std::int64_t chunk = headChunkRows(shape.tokens(), config.vocab);
    const std::int64_t most = headProductRows(config, shape);
    const bool mayAddUp = shape.microBatches > 1 || most < shape.tokens();
    const DType gradient = mayAddUp || config.tiedEmbedding ? DType::F32 : shape.compute;
    for (const std::int64_t rows : piecesOf(shape.tokens(), most)) {
        product.tokens = rows;
        list.addBackward(product, gradient, mayAddUp);
        for (const std::int64_t tokens : piecesOf(rows, std::min(chunk, rows))) {
            product.tokens = tokens;
            list.addForward(product, DType::F32);
        }
    }
}

} // namespace

CodeShape codeShapeOf(const RunProduct& product) noexcept
{
    const auto& [tokens, in, out] = std::tie(product.tokens, product.in, product.out);
    switch (product.kind) {
    case ProductKind::Forward:
        return {tokens, out, in, DType::E4M3};
    case ProductKind::InputGradient:
        return {tokens, in, out, kGradientCode};
    case ProductKind::WeightGradient:
        break;
    }
    return {out, in, tokens, kGradientCode};
}

std::size_t RunProduct::bytes() const noexcept
{
    if (isFp8) { // numbers and codes of both operands, a scale each, and scratch
        const CodeShape shape = codeShapeOf(*this);
        const std::int64_t rows = shape.m + shape.n;
        return tensorBytes(compute, rows, shape.k) + tensorBytes(DType::U8, rows, shape.k) +
               tensorBytes(result, shape.m, shape.n) + tensorBytes(compute, 1, out) +
               tensorBytes(DType::I32, 1, kQuantizePartials) + 8 * kProductAlign;
    }
    const DType outType = kind == ProductKind::Forward ? result : compute;
    const DType weightType = kind == ProductKind::WeightGradient ? result : compute;
    return tensorBytes(compute, tokens, in) + tensorBytes(outType, tokens, out) +
           tensorBytes(weightType, out, in) + (hasBias ? tensorBytes(compute, 1, out) : 0);
}

double RunProduct::flops() const noexcept
{
    return 2.0 * static_cast<double>(tokens) * static_cast<double>(in) * static_cast<double>(out);
}

std::string RunProduct::text() const
{
    constexpr std::array kNames = {"forward", "gradient of inputs", "gradient of weights"};
    return fmt::format("{}, {}{} ({} x {} x {})", place, isFp8 ? "FP8 " : "",
        kNames[static_cast<std::size_t>(kind)], tokens, in, out);
}

std::vector<RunProduct> runProducts(
    const ModelConfig& config, const ParamTable& table, const MicroShape& shape)
{
    ProductList list;
    RunProduct product;
    product.compute = shape.compute;
    product.tokens = shape.tokens();
    const bool mayAddUp = shape.microBatches > 1;
    for (const BlockProduct& place : kBlockProducts) {
        const ParamSlot* weight = table.find(GroupId{1}, place.weight);
        if (!weight)
            continue; // a model without blocks
        product.place = place.place;
        product.out = weight->rows;
        product.in = weight->cols;
        product.isFp8 = isInFp8(shape, *weight);
        product.hasBias = table.find(GroupId{1}, place.bias) != nullptr;
        list.addForward(product, shape.compute);
        list.addBackward(product, mayAddUp ? DType::F32 : shape.compute, mayAddUp);
    }
    addHead(config, shape, list);
    return list.take();
}

} // namespace mr
