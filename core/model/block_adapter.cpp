#include "core/model/block_adapter.h"

#include "core/base/philox.h"
#include "core/model/block.h"

namespace mr {
namespace {

TensorView matrixAt(
    std::byte* data, DType dtype, std::int64_t first, std::int64_t rows, std::int64_t cols)
{
    return matrixView(data + static_cast<std::size_t>(first) * sizeOf(dtype), dtype, rows, cols);
}

TensorView vectorAt(std::byte* data, DType dtype, const AdapterModule& module)
{
    return vectorView(
        data + static_cast<std::size_t>(module.magnitude) * sizeOf(dtype), dtype, module.rows);
}

ProductAdapter& productOf(BlockAdapter& block, SlotKind product)
{
    switch (product) {
    case SlotKind::Qkv:
        return block.qkv;
    case SlotKind::AttnOut:
        return block.attnOut;
    case SlotKind::GateUp:
        return block.gateUp;
    default:
        return block.down;
    }
}

// The index of a product in its block. Masks follow from it, so it stays as it is.
std::uint64_t placeOf(SlotKind product)
{
    switch (product) {
    case SlotKind::Qkv:
        return 0;
    case SlotKind::AttnOut:
        return 1;
    case SlotKind::GateUp:
        return 2;
    default:
        return 3;
    }
}

// The columns of H and Q of all modules, as a matrix without others beside them.
TensorView ranksOf(const TensorView& scratch, const ProductAdapter& adapter, std::int64_t tokens)
{
    return matrixView(scratch.data, scratch.dtype, tokens, adapter.a.dims[0]);
}

ColumnWindow ranksOf(const TensorView& hidden, const ModuleAdapter& module)
{
    return {hidden, module.firstRank, module.b.dims[1]};
}

ColumnWindow rowsOf(const TensorView& out, const ModuleAdapter& module)
{
    return {out, module.firstRow, module.b.dims[0]};
}

Status makeHidden(const LayerContext& c, const ProductAdapter& adapter, const TensorView& x,
    const TensorView& hidden)
{
    WindowProductArgs args{allColumns(x), allColumns(adapter.a), allColumns(hidden)};
    args.transposeB = true;
    return c.ops->windowProduct(args, *c.stream);
}

// gradX += Q A. With dropout, x is scratch that nobody reads any more.
Status addInputGradient(const LayerContext& c, const ProductAdapter& adapter,
    const TensorView& gradHidden, const TensorView& x, const TensorView& gradX)
{
    const bool drops = c.dropout.probability > 0.0;
    WindowProductArgs args{
        allColumns(gradHidden), allColumns(adapter.a), allColumns(drops ? x : gradX)};
    args.accumulate = !drops;
    MR_TRY(c.ops->windowProduct(args, *c.stream));
    if (!drops)
        return {};
    return c.ops->dropout({x, gradX, c.dropout.drawFor(adapter.product), true}, *c.stream);
}

} // namespace

DropoutDraw AdapterDropout::drawFor(SlotKind product) const noexcept
{
    const auto words = philox(seed, static_cast<std::uint64_t>(group), placeOf(product));
    DropoutDraw draw;
    draw.key = std::uint64_t{words[1]} << 32 | words[0];
    draw.counter = static_cast<std::uint64_t>(step) << 32 | static_cast<std::uint64_t>(micro);
    draw.probability = probability;
    return draw;
}

BlockAdapter blockAdapter(
    const ParamTable& trained, GroupId group, std::byte* groupData, DType dtype)
{
    BlockAdapter block;
    if (!trained.frozen || groupData == nullptr)
        return block;
    for (const AdapterModule& module :
        trained.frozen->adapters[static_cast<std::size_t>(group.value)]) {
        ProductAdapter& product = productOf(block, module.product);
        if (product.count == 0)
            product.a = matrixAt(groupData, dtype, module.a, 0, module.in);
        product.product = module.product;
        product.a.dims[0] += module.rank;
        product.modules[product.count++] = {
            matrixAt(groupData, dtype, module.b, module.rows, module.rank),
            trained.frozen->settings.dora ? vectorAt(groupData, dtype, module) : TensorView{},
            module.firstRow, module.firstRank, module.scale};
    }
    return block;
}

Status dropInput(const LayerContext& context, const ProductAdapter& adapter,
    const AdapterScratch& scratch, TensorView& x)
{
    if (context.dropout.probability == 0.0 || adapter.count == 0)
        return {};
    const TensorView dropped = matrixView(scratch.dropped.data, x.dtype, x.dims[0], x.dims[1]);
    MR_TRY(context.ops->dropout(
        {x, dropped, context.dropout.drawFor(adapter.product)}, *context.stream));
    x = dropped;
    return {};
}

Status addAdapter(const LayerContext& context, const ProductAdapter& adapter,
    const AdapterScratch& scratch, const TensorView& input, const TensorView& y)
{
    if (adapter.count == 0)
        return {};
    const TensorView hidden = ranksOf(scratch.hidden, adapter, input.dims[0]);
    MR_TRY(makeHidden(context, adapter, input, hidden));
    for (const ModuleAdapter& module : adapter.used()) {
        WindowProductArgs args{ranksOf(hidden, module), allColumns(module.b), rowsOf(y, module)};
        args.transposeB = true;
        args.scale = module.scale;
        args.accumulate = true;
        MR_TRY(context.ops->windowProduct(args, *context.stream));
    }
    return {};
}

Status backwardAdapter(const LayerContext& context, const ProductAdapter& adapter,
    const AdapterScratch& scratch, const AdapterBackward& backward)
{
    if (adapter.count == 0)
        return {};
    Ops& ops = *context.ops;
    Stream& stream = *context.stream;
    const TensorView& x = backward.input;
    const TensorView hidden = ranksOf(scratch.hidden, adapter, x.dims[0]);
    const TensorView gradHidden = ranksOf(scratch.gradHidden, adapter, x.dims[0]);
    MR_TRY(makeHidden(context, adapter, x, hidden));
    for (std::size_t i = 0; i < adapter.count; ++i) {
        const ModuleAdapter& module = adapter.modules[i];
        const ColumnWindow grad = rowsOf(backward.gradOut, module);
        WindowProductArgs ofHidden{grad, allColumns(module.b), ranksOf(gradHidden, module)};
        ofHidden.scale = module.scale;
        MR_TRY(ops.windowProduct(ofHidden, stream));
        WindowProductArgs ofB{
            grad, ranksOf(hidden, module), allColumns(backward.gradients.modules[i].b)};
        ofB.transposeA = true;
        ofB.scale = module.scale;
        ofB.accumulate = backward.accumulate;
        MR_TRY(ops.windowProduct(ofB, stream));
    }
    WindowProductArgs ofA{allColumns(gradHidden), allColumns(x), allColumns(backward.gradients.a)};
    ofA.transposeA = true;
    ofA.accumulate = backward.accumulate;
    MR_TRY(ops.windowProduct(ofA, stream));
    return addInputGradient(context, adapter, gradHidden, x, backward.gradX);
}

} // namespace mr
