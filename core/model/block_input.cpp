#include "core/model/block_input.h"

#include "core/device/master24.h"
#include "core/model/block_products.h"
#include "core/model/norm_of.h"

#include <cmath>

namespace mr {
namespace {

constexpr GateActivation kActivation = GateActivation::GeluTanh;
constexpr float kRootOfHalf = 0.707106781F; // of the sum of two

// Scratch for the rows at hand.
TensorView rowsOf(const TensorView& scratch, const BlockActivations& kept)
{
    return scratch.rows(0, kept.fed.dims[0]);
}

std::int64_t inputColumn(const LayerContext& c)
{
    return c.block * c.kind->layerInput;
}

// (T, layers P) as (T layers, P).
TensorView byLayer(const TensorView& inputs, std::int64_t columns)
{
    return matrixView(inputs.data, inputs.dtype, inputs.count() / columns, columns);
}

float rootOf(std::int64_t columns)
{
    return std::sqrt(static_cast<float>(columns));
}

// The input of the projection's norm.
Status project(
    const LayerContext& c, const InputTensors& w, const TensorView& x, const TensorView& projected)
{
    MR_TRY(c.ops->linear({x, w.projection, {}, projected}, *c.stream));
    return c.ops->scale({projected, projected, 1.0F / rootOf(c.config->hidden)}, *c.stream);
}

Status normInputs(const LayerContext& c, const InputTensors& w, const TensorView& projected,
    const TensorView& out, const TensorView& rstd)
{
    const std::int64_t columns = c.config->layerInput;
    return c.ops->rmsNorm({byLayer(projected, columns), {}, w.norm, {}, byLayer(out, columns), rstd,
                              epsOf(*c.config), gainOf(*c.config)},
        *c.stream);
}

// Rows of the table as they came with the batch, for all blocks. embed() rounds its factor, too.
Status addHostRows(const LayerContext& c, const TensorView& inputs, const TensorView& scratch)
{
    const float root = rootOf(c.config->layerInput);
    const float factor = inputs.dtype == DType::BF16 ? bf16Value(bf16Bits(root)) : root;
    const TensorView rows = c.batch.inputRows.rows(0, inputs.dims[0]);
    MR_TRY(c.ops->scale({rows, scratch, factor}, *c.stream));
    MR_TRY(c.ops->add({inputs, scratch, inputs}, *c.stream));
    return c.ops->scale({inputs, inputs, kRootOfHalf}, *c.stream);
}

// The block's input, into its columns of kept.inputGateUp.
Status takeInput(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const TensorView& scratch)
{
    const std::int64_t columns = c.kind->layerInput;
    const TensorView inputs = rowsOf(c.shared->inputs, kept);
    if (w.inputTable.data == nullptr)
        return c.ops->copyColumns(
            {inputs, kept.inputGateUp, inputColumn(c), columns, columns}, *c.stream);
    const TensorView ids = c.batch.ids.rows(0, scratch.dims[0]);
    MR_TRY(c.ops->embed({ids, w.inputTable, scratch, rootOf(columns)}, *c.stream));
    MR_TRY(c.ops->copyColumns({inputs, scratch, inputColumn(c), 0, columns, true}, *c.stream));
    MR_TRY(c.ops->scale({scratch, scratch, kRootOfHalf}, *c.stream));
    return c.ops->copyColumns({scratch, kept.inputGateUp, 0, columns, columns}, *c.stream);
}

// The gradient of the input, which stands in its columns of kept.inputGateUp: to where the input
// was, and to the table.
Status giveGradient(const LayerContext& c, const BlockTensors& g, const BlockActivations& kept,
    const TensorView& scratch, bool accumulate)
{
    const std::int64_t columns = c.kind->layerInput;
    MR_TRY(c.ops->copyColumns({kept.inputGateUp, scratch, columns, 0, columns}, *c.stream));
    MR_TRY(c.ops->scale({scratch, scratch, kRootOfHalf}, *c.stream));
    MR_TRY(c.ops->copyColumns({scratch, c.shared->inputs, 0, inputColumn(c), columns}, *c.stream));
    if (g.inputTable.data == nullptr)
        return {};
    return c.ops->embedBackward({c.batch.ids, c.batch.order, scratch, g.inputTable, accumulate,
                                    rootOf(columns), c.config->padToken},
        *c.stream);
}

} // namespace

Status forwardInput(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch)
{
    const std::int64_t columns = c.kind->layerInput;
    const TensorView gate = rowsOf(scratch.inputGate, kept);
    MR_TRY(c.ops->add({kept.mid, scratch.branch, kept.fed}, *c.stream));
    MR_TRY(multiply(c, scratch.fp8, {kept.fed, w.inputGate, {}, gate}));
    MR_TRY(c.ops->copyColumns({gate, kept.inputGateUp, 0, 0, columns}, *c.stream));
    MR_TRY(takeInput(c, w, kept, gate));
    MR_TRY(c.ops->swiglu({kept.inputGateUp, kept.inputActivated, kActivation}, *c.stream));
    MR_TRY(multiply(c, scratch.fp8, {kept.inputActivated, w.inputOut, {}, kept.inputBranch}));
    return c.ops->rmsNorm({kept.inputBranch, {}, w.inputNorm, {}, scratch.branch, kept.inputRstd,
                              epsOf(*c.config), gainOf(*c.config)},
        *c.stream);
}

Status remakeInput(const LayerContext& c, const BlockActivations& kept, const BlockScratch& scratch)
{
    MR_TRY(c.ops->add({kept.mid, scratch.branch, kept.fed}, *c.stream));
    return c.ops->swiglu({kept.inputGateUp, kept.inputActivated, kActivation}, *c.stream);
}

Status backwardInput(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockTensors& g = backward.gradients;
    const std::int64_t columns = c.kind->layerInput;
    const TensorView& branch = scratch.branch; // its gradient
    const TensorView& gate = scratch.inputGate;
    MR_TRY(c.ops->rmsNormBackward(
        {backward.grad, kept.inputBranch, w.inputNorm, kept.inputRstd, {}, branch, g.inputNorm,
            scratch.normPartial, backward.accumulate, gainOf(*c.config)},
        *c.stream));
    MR_TRY(multiplyBack(c, scratch.fp8,
        {branch, kept.inputActivated, g.inputOut, {}, c.productFor(g.inputOut),
            backward.accumulate},
        {branch, w.inputOut, gate}));
    MR_TRY(
        c.ops->swigluBackward({kept.inputGateUp, gate, kept.inputGateUp, kActivation}, *c.stream));
    MR_TRY(giveGradient(c, g, kept, gate, backward.accumulate));
    MR_TRY(c.ops->copyColumns({kept.inputGateUp, gate, 0, 0, columns}, *c.stream));
    MR_TRY(multiplyBack(c, scratch.fp8,
        {gate, kept.fed, g.inputGate, {}, c.productFor(g.inputGate), backward.accumulate},
        {gate, w.inputGate, scratch.gradNormed}));
    return c.ops->add({backward.grad, scratch.gradNormed, backward.grad}, *c.stream);
}

Status makeInputs(const LayerContext& c, const InputTensors& weights, const TensorView& x,
    const InputScratch& scratch)
{
    const std::int64_t rows = x.dims[0];
    const TensorView inputs = c.shared->inputs.rows(0, rows);
    const TensorView projected = scratch.projected.rows(0, rows);
    MR_TRY(project(c, weights, x, projected));
    MR_TRY(
        normInputs(c, weights, projected, inputs, scratch.rstd.rows(0, rows * c.config->layers)));
    return c.config->inputsAreOnHost() ? addHostRows(c, inputs, projected) : Status();
}

Status makeInputsBack(const LayerContext& c, const InputTensors& weights,
    const InputTensors& gradients, const TensorView& grad, const InputScratch& scratch,
    bool accumulate)
{
    const std::int64_t columns = c.config->layerInput;
    const TensorView& inputs = c.shared->inputs; // gradients
    const TensorView& normed = scratch.normed;
    MR_TRY(project(c, weights, scratch.x, scratch.projected));
    MR_TRY(normInputs(c, weights, scratch.projected, normed, scratch.rstd));
    MR_TRY(c.ops->rmsNormBackward(
        {byLayer(inputs, columns), byLayer(scratch.projected, columns), weights.norm, scratch.rstd,
            {}, byLayer(normed, columns), gradients.norm, scratch.normPartial, accumulate,
            gainOf(*c.config)},
        *c.stream));
    MR_TRY(c.ops->scale({normed, normed, 1.0F / rootOf(c.config->hidden)}, *c.stream));
    if (gradients.projection.data != nullptr)
        MR_TRY(c.ops->linearBackwardWeight({normed, scratch.x, gradients.projection, {},
                                               c.productFor(gradients.projection), accumulate},
            *c.stream));
    MR_TRY(c.ops->linearBackwardInput({normed, weights.projection, scratch.x}, *c.stream));
    return c.ops->add({grad, scratch.x, grad}, *c.stream);
}

} // namespace mr
