#include "core/prove/run_products.h"

#include "core/model/block_products.h"
#include "core/model/frozen_model.h"
#include "core/model/saved_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

namespace mr {
namespace {

struct GroupProduct {
    const char* place;
    SlotKind weight;
    std::optional<SlotKind> bias = {};
};

constexpr std::array kGroupProducts = {GroupProduct{"qkv", SlotKind::Qkv, SlotKind::QkvBias},
    GroupProduct{"attention out", SlotKind::AttnOut, SlotKind::AttnOutBias},
    GroupProduct{"gate-up", SlotKind::GateUp, SlotKind::GateUpBias},
    GroupProduct{"down", SlotKind::Down, SlotKind::DownBias},
    GroupProduct{"input gate", SlotKind::InputGate}, GroupProduct{"input out", SlotKind::InputOut},
    GroupProduct{"inputs", SlotKind::InputProjection}};

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
           a.hasBias == b.hasBias && a.window == b.window;
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

    void addInputGradient(RunProduct product)
    {
        product.hasBias = false;
        product.result = product.compute;
        product.kind = ProductKind::InputGradient;
        add(product);
    }

    void addWeightGradient(RunProduct product, DType gradient, bool mayAddUp)
    {
        product.hasBias = false;
        product.result = gradient;
        product.kind = ProductKind::WeightGradient;
        product.mayAddUp = mayAddUp;
        add(product);
    }

    void addWindow(const RunProduct& base, const WindowShape& window, DType result, bool mayAddUp)
    {
        RunProduct product;
        product.place = base.place;
        product.kind = ProductKind::Adapter;
        product.compute = base.compute;
        product.result = result;
        product.mayAddUp = mayAddUp;
        product.window = window;
        add(product);
    }

    std::vector<RunProduct> take() { return std::move(m_all); }

private:
    std::vector<RunProduct> m_all;
};

// The modules of one product of a block, and what they share.
struct ProductModules {
    std::vector<AdapterModule> modules;
    std::int64_t in = 0;
    std::int64_t ranks = 0;
};

ProductModules modulesOf(const ParamTable& trained, GroupId group, SlotKind product)
{
    ProductModules own;
    if (!trained.frozen)
        return own;
    for (const AdapterModule& module :
        trained.frozen->adapters[static_cast<std::size_t>(group.value)])
        if (module.product == product) {
            own.modules.push_back(module);
            own.in = module.in;
            own.ranks += module.rank;
        }
    return own;
}

// block_adapter.cpp makes H = x A^T, y += H B^T, Q = G B, the gradients G^T H of B and Q^T x of A,
// and gradX += Q A.
void addAdapter(
    const ProductModules& own, const RunProduct& base, const MicroShape& shape, ProductList& list)
{
    const std::int64_t tokens = shape.tokens();
    const WindowShape::Side x{own.in, 0};
    const WindowShape::Side all{own.ranks, 0};
    const bool mayAddUp = shape.microBatches > 1;
    const DType gradient = mayAddUp ? DType::F32 : shape.compute;
    list.addWindow(base, {tokens, own.ranks, own.in, x, x, all, false, true}, shape.compute, false);
    for (const AdapterModule& module : own.modules) {
        const WindowShape::Side hidden{own.ranks, module.firstRank};
        const WindowShape::Side b{module.rank, 0};
        const WindowShape::Side y{base.out, module.firstRow};
        list.addWindow(base, {tokens, module.rows, module.rank, hidden, b, y, false, true},
            shape.compute, true);
        list.addWindow(base, {tokens, module.rank, module.rows, y, b, hidden, false, false},
            shape.compute, false);
        list.addWindow(base, {module.rows, module.rank, tokens, y, hidden, b, true, false},
            gradient, mayAddUp);
    }
    list.addWindow(base, {own.ranks, own.in, tokens, all, x, x, true, false}, gradient, mayAddUp);
    list.addWindow(base, {tokens, own.in, own.ranks, all, x, x, false, false}, shape.compute,
        shape.dropout == 0.0);
}

// A block, or the embedding.
void addGroup(const ParamTable& trained, GroupId group, bool hasBackward, const MicroShape& shape,
    ProductList& list)
{
    const ParamTable& model = wholeModel(trained);
    const bool mayAddUp = shape.microBatches > 1;
    RunProduct product;
    product.compute = shape.compute;
    product.tokens = shape.tokens();
    for (const GroupProduct& place : kGroupProducts) {
        const ParamSlot* weight = model.find(group, place.weight);
        if (!weight)
            continue;
        product.place = place.place;
        product.out = weight->rows;
        product.in = weight->cols;
        product.isFp8 = group.value > 0 && isInFp8(shape, *weight);
        product.hasBias = place.bias && model.find(group, *place.bias) != nullptr;
        list.addForward(product, shape.compute);
        if (!hasBackward)
            continue;
        list.addInputGradient(product);
        if (frozenElements(trained, group) == 0)
            list.addWeightGradient(product, mayAddUp ? DType::F32 : shape.compute, mayAddUp);
        const ProductModules own = modulesOf(trained, group, place.weight);
        if (own.modules.empty())
            continue;
        addAdapter(own, product, shape, list);
        if (!trained.frozen->settings.dora)
            continue;
        product.hasBias = false; // for the gradient of the magnitudes
        list.addForward(product, shape.compute);
    }
}

// The gradients of rows of a tied head.
// `first`: the row of the matrix that is the first of the product's.
void addTokenRows(const std::vector<TokenRun>& runs, const RunProduct& head, std::int64_t first,
    bool mayAddUp, ProductList& list)
{
    const WindowShape::Side columns{head.in, 0};
    for (const TokenRun& run : runs) {
        const std::int64_t begin = std::max(run.firstToken, first);
        const std::int64_t end = std::min(run.firstToken + run.count, first + head.out);
        if (begin < end)
            list.addWindow(head,
                {end - begin, head.in, head.tokens, {head.out, begin - first}, columns, columns,
                    true, false},
                DType::F32, mayAddUp);
    }
}

// A vocabulary in parts (head_parts.cpp). The gradient of the input is summed over them by its
// product, which no other route does otherwise.
void addHeadParts(const ModelConfig& config, const ParamTable& trained, const MicroShape& shape,
    RunProduct product, ProductList& list)
{
    const HeadParts parts = headParts(config, shape);
    const std::int64_t chunk = headChunkRows(shape.tokens(), config.vocab);
    const bool mayAddUp = shape.microBatches > 1;
    const DType gradient = mayAddUp || config.tiedEmbedding ? DType::F32 : shape.compute;
    const WindowShape::Side columns{product.in, 0};
    for (std::int64_t part = 0; part < parts.count(); ++part) {
        product.out = parts.rowsOf(part);
        product.tokens = shape.tokens();
        list.addWindow(product,
            {product.tokens, product.in, product.out, {product.out, 0}, columns, columns, false,
                false},
            DType::F32, false);
        if (trainsHeadMatrix(trained))
            list.addWeightGradient(product, gradient, mayAddUp);
        addTokenRows(tokenRuns(trained), product, parts.first(part), mayAddUp, list);
        for (const std::int64_t tokens : piecesOf(shape.tokens(), chunk)) {
            product.tokens = tokens;
            list.addForward(product, DType::F32);
        }
    }
}

// Logits by chunks, gradients by larger ones (head.cpp).
void addHead(const ModelConfig& config, const ParamTable& trained, const MicroShape& shape,
    ProductList& list)
{
    RunProduct product;
    product.place = "head";
    product.compute = shape.compute;
    product.in = config.hidden;
    product.out = config.vocab;
    if (headParts(config, shape).areSeveral())
        return addHeadParts(config, trained, shape, product, list);
    const std::int64_t chunk = headChunkRows(shape.tokens(), config.vocab);
    const std::int64_t most = headProductRows(config, shape);
    const bool mayAddUp = shape.microBatches > 1 || most < shape.tokens();
    const DType gradient = mayAddUp || config.tiedEmbedding ? DType::F32 : shape.compute;
    for (const std::int64_t rows : piecesOf(shape.tokens(), most)) {
        product.tokens = rows;
        list.addInputGradient(product);
        if (trainsHeadMatrix(trained))
            list.addWeightGradient(product, gradient, mayAddUp);
        if (config.tiedEmbedding)
            addTokenRows(tokenRuns(trained), product, 0, mayAddUp, list);
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
    case ProductKind::Adapter: // in FP8 never
        break;
    }
    return {out, in, tokens, kGradientCode};
}

std::size_t RunProduct::bytes() const noexcept
{
    if (kind == ProductKind::Adapter)
        return tensorBytes(compute, window.transposeA ? window.k : window.m, window.a.columns) +
               tensorBytes(compute, window.transposeB ? window.n : window.k, window.b.columns) +
               tensorBytes(result, window.m, window.out.columns);
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
    if (kind == ProductKind::Adapter)
        return 2.0 * static_cast<double>(window.m) * static_cast<double>(window.n) *
               static_cast<double>(window.k);
    return 2.0 * static_cast<double>(tokens) * static_cast<double>(in) * static_cast<double>(out);
}

std::string RunProduct::text() const
{
    if (kind == ProductKind::Adapter)
        return fmt::format("{}, adapter ({} x {} x {})", place, window.m, window.k, window.n);
    constexpr std::array kNames = {"forward", "gradient of inputs", "gradient of weights"};
    return fmt::format("{}, {}{} ({} x {} x {})", place, isFp8 ? "FP8 " : "",
        kNames[static_cast<std::size_t>(kind)], tokens, in, out);
}

std::vector<RunProduct> runProducts(
    const ModelConfig& config, const ParamTable& trained, const MicroShape& shape)
{
    ProductList list;
    const auto first = std::find_if(trained.groups.begin(), trained.groups.end(),
        [](const ParamGroup& group) { return group.elements > 0; });
    const auto head = static_cast<std::int32_t>(trained.groups.size()) - 1;
    for (std::int32_t g = 0; g < head; ++g)
        addGroup(trained, GroupId{g}, g >= first - trained.groups.begin(), shape, list);
    addHead(config, trained, shape, list);
    return list.take();
}

} // namespace mr
