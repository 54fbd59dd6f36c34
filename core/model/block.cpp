#include "core/model/block.h"

#include "core/model/block_dora.h"
#include "core/model/block_input.h"
#include "core/model/block_mixers.h"
#include "core/model/block_products.h"
#include "core/model/norm_of.h"

#include <utility>

namespace mr {
namespace {

GateActivation activationOf(const BlockKind& kind)
{
    return kind.geluGate ? GateActivation::GeluTanh : GateActivation::Silu;
}

// y = x weight^T + bias, and what the adapter adds.
Status project(const LayerContext& c, const BlockScratch& scratch, ProductAdapter BlockAdapter::*of,
    const LinearArgs& args)
{
    MR_TRY(multiply(c, scratch.fp8, args));
    if (!c.adapter)
        return {};
    const ProductAdapter& adapter = c.adapter->*of;
    if (adapter.hasMagnitudes())
        return addDora(c, adapter, scratch, args);
    TensorView input = args.x;
    MR_TRY(dropInput(c, adapter, scratch.adapter, input));
    return addAdapter(c, adapter, scratch.adapter, input, args.out);
}

// The gradients of project().
Status projectBack(const LayerContext& c, const BlockScratch& scratch,
    ProductAdapter BlockAdapter::*of, const BlockBackward& backward,
    LinearBackwardWeightArgs weight, LinearBackwardInputArgs input)
{
    if (c.adapter && (c.adapter->*of).hasMagnitudes()) // beside a frozen model
        return backwardDora(c, c.adapter->*of, scratch,
            {backward.adapter.*of, weight.x, input.weight, weight.gradOut, input.gradX,
                weight.accumulate});
    MR_TRY(multiplyBack(c, scratch.fp8, weight, input));
    if (!c.adapter)
        return {};
    MR_TRY(dropInput(c, c.adapter->*of, scratch.adapter, weight.x));
    return backwardAdapter(c, c.adapter->*of, scratch.adapter,
        {backward.adapter.*of, weight.gradOut, weight.x, input.gradX, weight.accumulate});
}

// The norm of the branch that attention or the MLP adds to the residual stream.
struct BranchNorm {
    TensorView branch;     // (T, H), c
    TensorView weight;     // (H), c
    TensorView rstd;       // (T), F32
    TensorView gradWeight; // (H), F32
};

bool scalesBranches(const LayerContext& c)
{
    return c.kind->branchScale != 1.0;
}

// `to` = `from` times BlockKind::branchScale.
Status scaleBranch(const LayerContext& c, const TensorView& from, const TensorView& to)
{
    return c.ops->scale({from, to, static_cast<float>(c.kind->branchScale)}, *c.stream);
}

// Into scratch.branch, from which it is added: a branch that is normed or not, then scaled.
Status finishBranch(const LayerContext& c, const BranchNorm& norm, const BlockScratch& scratch)
{
    if (c.kind->branchNorms)
        MR_TRY(c.ops->rmsNorm({norm.branch, {}, norm.weight, {}, scratch.branch, norm.rstd,
                                  epsOf(*c.config), gainOf(*c.config)},
            *c.stream));
    return scalesBranches(c) ? scaleBranch(c, scratch.branch, scratch.branch) : Status();
}

// `gradient`: that of the branch before its scale and its norm; without them, the stream's own.
Status branchGradient(const LayerContext& c, const BranchNorm& norm, const BlockScratch& scratch,
    const BlockBackward& backward, TensorView& gradient)
{
    gradient = backward.grad;
    if (scalesBranches(c)) {
        gradient = c.kind->branchNorms ? scratch.gradNormed : scratch.branch;
        MR_TRY(scaleBranch(c, backward.grad, gradient));
    }
    if (!c.kind->branchNorms)
        return {};
    const TensorView ofOutput = std::exchange(gradient, scratch.branch);
    return c.ops->rmsNormBackward(
        {ofOutput, norm.branch, norm.weight, norm.rstd, {}, gradient, norm.gradWeight,
            scratch.normPartial, backward.accumulate, gainOf(*c.config)},
        *c.stream);
}

// The gradient of what a branch reads, in scratch.gradNormed, joins that of the stream.
struct InputNorm {
    TensorView x;
    TensorView weight;
    TensorView rstd;
    TensorView gradWeight;
};

Status joinGradient(const LayerContext& c, const InputNorm& norm, const BlockScratch& scratch,
    const BlockBackward& backward)
{
    const TensorView& grad = backward.grad;
    if (!c.kind->inputNorms)
        return c.ops->add({grad, scratch.gradNormed, grad}, *c.stream);
    return c.ops->rmsNormBackward(
        {scratch.gradNormed, norm.x, norm.weight, norm.rstd, grad, grad, norm.gradWeight,
            scratch.normPartial, backward.accumulate, gainOf(*c.config)},
        *c.stream);
}

BranchNorm attentionBranch(const BlockTensors& w, const BlockActivations& kept)
{
    return {kept.attnBranch, w.attnBranchNorm, kept.attnBranchRstd, {}};
}

BranchNorm mlpBranch(const BlockTensors& w, const BlockActivations& kept)
{
    return {kept.mlpBranch, w.mlpBranchNorm, kept.mlpBranchRstd, {}};
}

// A projection leaves its branch there.
const TensorView& branchOutput(
    const LayerContext& c, const TensorView& kept, const BlockScratch& scratch)
{
    return c.kind->branchNorms ? kept : scratch.branch;
}

// The input of attention, or of the MLP.
const TensorView& attentionInput(
    const LayerContext& c, const TensorView& x, const BlockActivations& kept)
{
    return c.kind->inputNorms ? kept.normed1 : x;
}

const TensorView& mlpInput(const LayerContext& c, const BlockActivations& kept)
{
    return c.kind->inputNorms ? kept.normed2 : kept.mid;
}

Status beginBlock(const LayerContext& c, const BlockTensors& w, const LayerInput& input,
    const BlockActivations& kept)
{
    if (!c.kind->inputNorms)
        return addParts(c, input);
    return c.ops->rmsNorm(
        inputNorm(*c.config, input, w.attnNorm, kept.normed1, kept.rstd1), *c.stream);
}

// Up to the branch that is added to the residual stream.
Status forwardAttention(const LayerContext& c, const BlockTensors& w, const LayerInput& input,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    MR_TRY(beginBlock(c, w, input, kept));
    MR_TRY(project(c, scratch, &BlockAdapter::qkv,
        {attentionInput(c, input.x, kept), w.qkv, w.qkvBias, projectedOf(*c.kind, kept, scratch)}));
    MR_TRY(mixTokens(c, w, kept, scratch));
    MR_TRY(gateMixer(c, w, kept));
    MR_TRY(project(c, scratch, &BlockAdapter::attnOut,
        {mixedOf(kept), w.attnOut, w.attnOutBias, branchOutput(c, kept.attnBranch, scratch)}));
    return finishBranch(c, attentionBranch(w, kept), scratch);
}

// kept.mid, and what the MLP reads.
Status beginMlp(const LayerContext& c, const BlockTensors& w, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    if (!c.kind->inputNorms)
        return c.ops->add({scratch.branch, x, kept.mid}, *c.stream);
    return c.ops->rmsNorm({scratch.branch, x, w.mlpNorm, kept.mid, kept.normed2, kept.rstd2,
                              epsOf(*c.config), gainOf(*c.config)},
        *c.stream);
}

// From `mid` to the activation that the last product reads. The norm adds the residual.
Status forwardMlp(const LayerContext& c, const BlockTensors& w, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    MR_TRY(beginMlp(c, w, x, kept, scratch));
    MR_TRY(project(c, scratch, &BlockAdapter::gateUp,
        {mlpInput(c, kept), w.gateUp, w.gateUpBias, kept.gateUp}));
    return c.ops->swiglu({kept.gateUp, kept.activated, activationOf(*c.kind)}, *c.stream);
}

Status backwardMlp(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockTensors& g = backward.gradients;
    BranchNorm norm = mlpBranch(w, kept);
    norm.gradWeight = g.mlpBranchNorm;
    TensorView branch;
    MR_TRY(branchGradient(c, norm, scratch, backward, branch));
    MR_TRY(projectBack(c, scratch, &BlockAdapter::down, backward,
        {branch, kept.activated, g.down, g.downBias, c.productFor(g.down), backward.accumulate},
        {branch, w.down, scratch.gradActivated}));
    MR_TRY(c.ops->swigluBackward(
        {kept.gateUp, scratch.gradActivated, kept.gateUp, activationOf(*c.kind)}, *c.stream));
    MR_TRY(projectBack(c, scratch, &BlockAdapter::gateUp, backward,
        {kept.gateUp, mlpInput(c, kept), g.gateUp, g.gateUpBias, c.productFor(g.gateUp),
            backward.accumulate},
        {kept.gateUp, w.gateUp, scratch.gradNormed}));
    return joinGradient(c, {kept.mid, w.mlpNorm, kept.rstd2, g.mlpNorm}, scratch, backward);
}

Status backwardAttention(const LayerContext& c, const BlockTensors& w, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockTensors& g = backward.gradients;
    BranchNorm norm = attentionBranch(w, kept);
    norm.gradWeight = g.attnBranchNorm;
    TensorView branch;
    MR_TRY(branchGradient(c, norm, scratch, backward, branch));
    MR_TRY(projectBack(c, scratch, &BlockAdapter::attnOut, backward,
        {branch, mixedOf(kept), g.attnOut, g.attnOutBias, c.productFor(g.attnOut),
            backward.accumulate},
        {branch, w.attnOut, scratch.gradAttention}));
    MR_TRY(mixTokensBack(c, w, kept, scratch, backward));
    const TensorView& gradient = gradProjectedOf(scratch);
    MR_TRY(projectBack(c, scratch, &BlockAdapter::qkv, backward,
        {gradient, attentionInput(c, x, kept), g.qkv, g.qkvBias, c.productFor(g.qkv),
            backward.accumulate},
        {gradient, w.qkv, scratch.gradNormed}));
    return joinGradient(c, {x, w.attnNorm, kept.rstd1, g.attnNorm}, scratch, backward);
}

} // namespace

TensorView slotView(
    const ParamTable& table, GroupId group, SlotKind kind, std::byte* groupData, DType dtype)
{
    const ParamSlot* slot = table.find(group, kind);
    if (!slot)
        return {};
    std::byte* data = groupData + static_cast<std::size_t>(slot->first) * sizeOf(dtype);
    return slot->rank == 1 ? vectorView(data, dtype, slot->count())
                           : matrixView(data, dtype, slot->rows, slot->cols);
}

BlockTensors blockTensors(const ParamTable& table, GroupId group, std::byte* groupData, DType dtype)
{
    const auto view = [&](SlotKind kind) { return slotView(table, group, kind, groupData, dtype); };
    return {view(SlotKind::AttnNorm), view(SlotKind::Qkv), view(SlotKind::QkvBias),
        view(SlotKind::QueryNorm), view(SlotKind::KeyNorm), view(SlotKind::AttnOut),
        view(SlotKind::AttnOutBias), view(SlotKind::AttnBranchNorm), view(SlotKind::MlpNorm),
        view(SlotKind::GateUp), view(SlotKind::GateUpBias), view(SlotKind::Down),
        view(SlotKind::DownBias), view(SlotKind::MlpBranchNorm), view(SlotKind::Conv),
        view(SlotKind::LogDecay), view(SlotKind::TimeBias), view(SlotKind::DeltaNorm),
        view(SlotKind::InputGate), view(SlotKind::InputOut), view(SlotKind::InputNorm),
        view(SlotKind::InputTable)};
}

namespace {

// The output of a block, or its gradient.
Status scaleOutput(const LayerContext& c, const TensorView& out)
{
    const float factor = c.config->outputScaleOf(c.block);
    return factor == 1.0F ? Status() : c.ops->scale({out, out, factor}, *c.stream);
}

// All of forwardBlock() that backward reads. The norm of the MLP's branch keeps something, too, so
// it is made with its product.
Status forwardToBranch(const LayerContext& context, const BlockTensors& weights,
    const LayerInput& input, const BlockActivations& kept, const BlockScratch& scratch)
{
    MR_TRY(forwardAttention(context, weights, input, kept, scratch));
    MR_TRY(forwardMlp(context, weights, input.x, kept, scratch));
    if (!context.kind->branchNorms)
        return {};
    return project(context, scratch, &BlockAdapter::down,
        {kept.activated, weights.down, weights.downBias, kept.mlpBranch});
}

} // namespace

Status forwardBlock(const LayerContext& context, const BlockTensors& weights,
    const LayerInput& input, const TensorView& out, const BlockActivations& kept,
    const BlockScratch& scratch)
{
    MR_TRY(forwardToBranch(context, weights, input, kept, scratch));
    if (!context.kind->branchNorms)
        MR_TRY(project(context, scratch, &BlockAdapter::down,
            {kept.activated, weights.down, weights.downBias, scratch.branch}));
    MR_TRY(finishBranch(context, mlpBranch(weights, kept), scratch));
    if (context.kind->layerInput > 0)
        MR_TRY(forwardInput(context, weights, kept, scratch));
    if (out.data == nullptr)
        return {};
    MR_TRY(context.ops->add({streamOf(kept), scratch.branch, out}, *context.stream));
    return scaleOutput(context, out);
}

Status recomputeBlock(const LayerContext& context, const BlockTensors& weights, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    MR_TRY(forwardToBranch(context, weights, {x, {}, {}}, kept, scratch));
    if (context.kind->branchNorms)
        MR_TRY(finishBranch(context, mlpBranch(weights, kept), scratch));
    return context.kind->layerInput > 0 ? forwardInput(context, weights, kept, scratch) : Status();
}

// The norms read the sum that is there, or make it again where the branch was kept.
Status remakeActivations(const LayerContext& context, const BlockTensors& weights,
    const TensorView& x, const BlockActivations& kept, const BlockScratch& scratch)
{
    const float eps = epsOf(*context.config);
    const NormGain gain = gainOf(*context.config);
    const BlockKind& kind = *context.kind;
    Ops& ops = *context.ops;
    Stream& stream = *context.stream;
    MR_TRY(beginBlock(context, weights, {x, {}, {}}, kept));
    MR_TRY(gateMixer(context, weights, kept));
    if (kind.branchNorms) {
        MR_TRY(finishBranch(context, attentionBranch(weights, kept), scratch));
        MR_TRY(beginMlp(context, weights, x, kept, scratch));
    } else if (kind.inputNorms) {
        MR_TRY(ops.rmsNorm(
            {kept.mid, {}, weights.mlpNorm, {}, kept.normed2, kept.rstd2, eps, gain}, stream));
    }
    MR_TRY(ops.swiglu({kept.gateUp, kept.activated, activationOf(kind)}, stream));
    if (kind.layerInput == 0)
        return {};
    MR_TRY(finishBranch(context, mlpBranch(weights, kept), scratch));
    return remakeInput(context, kept, scratch);
}

Status backwardBlock(const LayerContext& context, const BlockTensors& weights, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch, const BlockBackward& backward)
{
    MR_TRY(scaleOutput(context, backward.grad));
    if (context.kind->layerInput > 0)
        MR_TRY(backwardInput(context, weights, kept, scratch, backward));
    MR_TRY(backwardMlp(context, weights, kept, scratch, backward));
    return backwardAttention(context, weights, x, kept, scratch, backward);
}

} // namespace mr
