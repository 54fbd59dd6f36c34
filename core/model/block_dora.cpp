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

// The scratch of a product, in the shape of `like`.
TensorView productOf(const AdapterScratch& scratch, const TensorView& like)
{
    return matrixView(scratch.product.data, like.dtype, like.dims[0], like.dims[1]);
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

// factors -= 1, which leaves 0 for rows without a module.
Status subtractOne(const LayerContext& c, const AdapterScratch& scratch, std::int64_t rows)
{
    const TensorView factors = scratch.factors.rows(0, rows);
    const TensorView ones = scratch.norms.rows(0, rows); // nobody reads these norms any more
    MR_TRY(c.ops->fill({ones, -1.0F}, *c.stream));
    return c.ops->add({factors, ones, factors}, *c.stream);
}

Status fillFactors(const LayerContext& c, const AdapterScratch& scratch, std::int64_t rows)
{
    return c.ops->fill({scratch.factors.rows(0, rows), 1.0F}, *c.stream);
}

// base.out, which the adapter is added to, times m / n.
Status scaleByMagnitudes(const LayerContext& c, const ProductAdapter& adapter,
    const AdapterScratch& scratch, const LinearArgs& base)
{
    MR_TRY(makeNorms(c, adapter, scratch, base.weight));
    for (const ModuleAdapter& module : adapter.used()) {
        const ColumnWindow columns = columnsOf(base.out, module);
        MR_TRY(c.ops->scaleColumns(
            {columns, partOf(scratch.factors, module), partOf(base.bias, module), columns},
            *c.stream));
    }
    return {};
}

// out += k scale d A^T B^T, then (k - 1) d W^T, each by way of scratch.
Status addBesideDropout(const LayerContext& c, const ProductAdapter& adapter,
    const BlockScratch& scratch, const LinearArgs& base)
{
    const AdapterScratch& own = scratch.adapter;
    const TensorView& out = base.out;
    LinearArgs part = base;
    part.bias = {};
    part.out = productOf(own, out);
    MR_TRY(dropInput(c, adapter, own, part.x));
    MR_TRY(c.ops->fill({part.out, 0.0F}, *c.stream));
    MR_TRY(addAdapter(c, adapter, own, part.x, part.out));
    MR_TRY(fillFactors(c, own, out.dims[1]));
    MR_TRY(scaleByMagnitudes(c, adapter, own, part));
    MR_TRY(c.ops->add({out, part.out, out}, *c.stream));
    MR_TRY(multiply(c, scratch.fp8, part));
    MR_TRY(subtractOne(c, own, out.dims[1]));
    const ColumnWindow all = allColumns(part.out);
    MR_TRY(c.ops->scaleColumns({all, own.factors.rows(0, out.dims[1]), {}, all}, *c.stream));
    return c.ops->add({out, part.out, out}, *c.stream);
}

// The gradients of magnitudes, of what the adapter reads. Leaves G k in scratch.product, k in
// scratch.factors.
Status backwardMagnitudes(const LayerContext& c, const ProductAdapter& adapter,
    const BlockScratch& scratch, const DoraBackward& backward, const TensorView& input)
{
    const TensorView& gradOut = backward.gradOut;
    const AdapterScratch& own = scratch.adapter;
    LinearArgs base;
    base.x = input;
    base.weight = backward.weight;
    base.out = productOf(own, gradOut);
    MR_TRY(multiply(c, scratch.fp8, base));
    MR_TRY(addAdapter(c, adapter, own, input, base.out));
    MR_TRY(fillFactors(c, own, gradOut.dims[1]));
    MR_TRY(makeNorms(c, adapter, own, base.weight));
    for (std::size_t i = 0; i < adapter.count; ++i) {
        const ModuleAdapter& module = adapter.modules[i];
        MR_TRY(c.ops->columnDots(
            {columnsOf(gradOut, module), columnsOf(base.out, module), partOf(own.norms, module),
                backward.gradients.modules[i].magnitude, backward.accumulate},
            *c.stream));
    }
    return c.ops->scaleColumns(
        {allColumns(gradOut), own.factors.rows(0, gradOut.dims[1]), {}, allColumns(base.out)},
        *c.stream);
}

// gradX = gradOut W
Status inputGradient(const LayerContext& c, const BlockScratch& scratch,
    const DoraBackward& backward, const TensorView& gradOut, const TensorView& gradX)
{
    LinearBackwardWeightArgs weight;
    weight.x = backward.x;
    weight.gradOut = gradOut;
    return multiplyBack(c, scratch.fp8, weight, {gradOut, backward.weight, gradX});
}

// gradX += mask (k - 1) G W / (1 - p). Precondition: factors are k.
Status addDroppedGradient(const LayerContext& c, const ProductAdapter& adapter,
    const BlockScratch& scratch, const DoraBackward& backward)
{
    const AdapterScratch& own = scratch.adapter;
    const TensorView& gradOut = backward.gradOut;
    const TensorView& gradX = backward.gradX;
    const std::int64_t rows = gradOut.dims[1];
    const TensorView scaled = productOf(own, gradOut);
    const TensorView dropped =
        matrixView(own.dropped.data, gradX.dtype, gradX.dims[0], gradX.dims[1]);
    MR_TRY(subtractOne(c, own, rows));
    MR_TRY(c.ops->scaleColumns(
        {allColumns(gradOut), own.factors.rows(0, rows), {}, allColumns(scaled)}, *c.stream));
    MR_TRY(inputGradient(c, scratch, backward, scaled, dropped));
    return c.ops->dropout({dropped, gradX, c.dropout.drawFor(adapter.product), true}, *c.stream);
}

} // namespace

Status addDora(const LayerContext& context, const ProductAdapter& adapter,
    const BlockScratch& scratch, const LinearArgs& base)
{
    if (context.dropout.probability > 0.0)
        return addBesideDropout(context, adapter, scratch, base);
    MR_TRY(addAdapter(context, adapter, scratch.adapter, base.x, base.out));
    return scaleByMagnitudes(context, adapter, scratch.adapter, base);
}

Status backwardDora(const LayerContext& context, const ProductAdapter& adapter,
    const BlockScratch& scratch, const DoraBackward& backward)
{
    const TensorView& gradOut = backward.gradOut;
    const bool drops = context.dropout.probability > 0.0;
    TensorView input = backward.x;
    MR_TRY(dropInput(context, adapter, scratch.adapter, input));
    MR_TRY(backwardMagnitudes(context, adapter, scratch, backward, input));
    const TensorView scaled = productOf(scratch.adapter, gradOut);
    MR_TRY(inputGradient(context, scratch, backward, drops ? gradOut : scaled, backward.gradX));
    MR_TRY(backwardAdapter(context, adapter, scratch.adapter,
        {backward.gradients, scaled, input, backward.gradX, backward.accumulate}));
    return drops ? addDroppedGradient(context, adapter, scratch, backward) : Status();
}

} // namespace mr
