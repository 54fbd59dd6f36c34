#include "core/model/block_dora.h"

#include "core/model/block.h"
#include "core/model/block_products.h"

namespace mr {
namespace {

// The rows of a module in a vector of the whole product.
TensorView partOf(const TensorView& vector, const ModuleAdapter& module)
{
    return vector.data ? vector.rows(module.firstRow, module.b.dims[0]) : TensorView{};
}

ColumnWindow columnsOf(const TensorView& matrix, const ModuleAdapter& module)
{
    return {matrix, module.firstRow, module.b.dims[0]};
}

Status makeNorms(const LayerContext& c, const ProductAdapter& adapter,
    const AdapterScratch& scratch, const TensorView& weight)
{
    for (const ModuleAdapter& module : adapter.used())
        MR_TRY(c.ops->adapterNorms(
            {partOf(weight, module), adapter.a.rows(module.firstRank, module.b.dims[1]), module.b,
                module.magnitude, partOf(scratch.norms, module), partOf(scratch.factors, module),
                module.scale},
            *c.stream));
    return {};
}

} // namespace

Status scaleByMagnitudes(const LayerContext& context, const ProductAdapter& adapter,
    const AdapterScratch& scratch, const LinearArgs& base)
{
    MR_TRY(makeNorms(context, adapter, scratch, base.weight));
    for (const ModuleAdapter& module : adapter.used()) {
        const ColumnWindow columns = columnsOf(base.out, module);
        MR_TRY(context.ops->scaleColumns(
            {columns, partOf(scratch.factors, module), partOf(base.bias, module), columns},
            *context.stream));
    }
    return {};
}

Status backwardMagnitudes(const LayerContext& context, const ProductAdapter& adapter,
    const BlockScratch& scratch, const MagnitudeBackward& backward, TensorView& scaled)
{
    Ops& ops = *context.ops;
    Stream& stream = *context.stream;
    const TensorView& gradOut = backward.gradOut;
    const AdapterScratch& own = scratch.adapter;
    LinearArgs base = backward.base;
    base.bias = {};
    base.out = matrixView(own.product.data, gradOut.dtype, gradOut.dims[0], gradOut.dims[1]);
    MR_TRY(multiply(context, scratch.fp8, base));
    MR_TRY(addAdapter(context, adapter, own, base.x, base.out));
    const TensorView factors = own.factors.rows(0, gradOut.dims[1]);
    MR_TRY(ops.fill({factors, 1.0F}, stream)); // of rows without a module
    MR_TRY(makeNorms(context, adapter, own, base.weight));
    for (std::size_t i = 0; i < adapter.count; ++i) {
        const ModuleAdapter& module = adapter.modules[i];
        MR_TRY(ops.columnDots(
            {columnsOf(gradOut, module), columnsOf(base.out, module), partOf(own.norms, module),
                backward.gradients.modules[i].magnitude, backward.accumulate},
            stream));
    }
    scaled = base.out;
    return ops.scaleColumns({allColumns(gradOut), factors, {}, allColumns(scaled)}, stream);
}

} // namespace mr
