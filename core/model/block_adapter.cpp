#include "core/model/block_adapter.h"

#include "core/model/block.h"

#include <span>

namespace mr {
namespace {

TensorView matrixAt(
    std::byte* data, DType dtype, std::int64_t first, std::int64_t rows, std::int64_t cols)
{
    return matrixView(data + static_cast<std::size_t>(first) * sizeOf(dtype), dtype, rows, cols);
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

std::span<const ModuleAdapter> modulesOf(const ProductAdapter& adapter)
{
    return std::span(adapter.modules).first(adapter.count);
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

} // namespace

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
        product.a.dims[0] += module.rank;
        product.modules[product.count++] = {
            matrixAt(groupData, dtype, module.b, module.rows, module.rank), module.firstRow,
            module.firstRank, module.scale};
    }
    return block;
}

Status addAdapter(const LayerContext& context, const ProductAdapter& adapter,
    const AdapterScratch& scratch, const TensorView& x, const TensorView& y)
{
    if (adapter.count == 0)
        return {};
    const TensorView hidden = ranksOf(scratch.hidden, adapter, x.dims[0]);
    MR_TRY(makeHidden(context, adapter, x, hidden));
    for (const ModuleAdapter& module : modulesOf(adapter)) {
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
    const TensorView& x = backward.x;
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
    WindowProductArgs ofX{
        allColumns(gradHidden), allColumns(adapter.a), allColumns(backward.gradX)};
    ofX.accumulate = true;
    return ops.windowProduct(ofX, stream);
}

} // namespace mr
