#include "core/model/block.h"

#include "core/model/block_dora.h"
#include "core/model/block_products.h"
#include "core/model/norm_of.h"

#include <cmath>

namespace mr {
namespace {

float attentionScale(const ModelConfig& config)
{
    const double scalar =
        config.queryScalar > 0.0 ? config.queryScalar : static_cast<double>(config.headDim);
    return static_cast<float>(1.0 / std::sqrt(scalar));
}

float attentionCap(const ModelConfig& config)
{
    return static_cast<float>(config.attentionCap);
}

GateActivation activationOf(const ModelConfig& config)
{
    return config.geluGate ? GateActivation::GeluTanh : GateActivation::Silu;
}

RopeArgs ropeArgs(const LayerContext& c, const TensorView& x, bool inverse)
{
    return {x, c.batch.positions, c.constants.cosTable, c.constants.sinTable,
        static_cast<int>(c.config->heads + c.config->kvHeads), static_cast<int>(c.config->headDim),
        static_cast<int>(c.config->turnedColumns()), inverse};
}

// Memory of a tensor that nobody reads any more, as scratch.
TensorView floatsOf(const TensorView& unread)
{
    return vectorView(
        unread.data, DType::F32, static_cast<std::int64_t>(unread.bytes() / sizeof(float)));
}

HeadNorm queryNorm(const BlockTensors& w, const BlockActivations& kept)
{
    return {kept.queries, kept.queryRstd, w.queryNorm};
}

HeadNorm keyNorm(const BlockTensors& w, const BlockActivations& kept)
{
    return {kept.keys, kept.keyRstd, w.keyNorm};
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

// kept.qkv: from the projection to what attention reads.
Status placeHeads(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept)
{
    const RopeArgs rope = ropeArgs(c, kept.qkv, false);
    if (!c.config->queryKeyNorm)
        return c.ops->rope(rope, *c.stream);
    return c.ops->headNormRope(
        {kept.qkv, queryNorm(w, kept), keyNorm(w, kept), rope.positions, rope.cosTable,
            rope.sinTable, static_cast<int>(c.config->heads), static_cast<int>(c.config->kvHeads),
            rope.headDim, rope.rotaryDim, epsOf(*c.config), gainOf(*c.config)},
        *c.stream);
}

// scratch.gradQkv: from the gradient of what attention read to that of the projection.
Status backwardHeads(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const RopeArgs rope = ropeArgs(c, scratch.gradQkv, true);
    if (!c.config->queryKeyNorm)
        return c.ops->rope(rope, *c.stream);
    return c.ops->headNormRopeBackward(
        {scratch.gradQkv, queryNorm(w, kept), keyNorm(w, kept), backward.gradients.queryNorm,
            backward.gradients.keyNorm, scratch.headPartial, rope.positions, rope.cosTable,
            rope.sinTable, static_cast<int>(c.config->heads), static_cast<int>(c.config->kvHeads),
            rope.headDim, rope.rotaryDim, backward.accumulate, gainOf(*c.config)},
        *c.stream);
}

// The norm of the branch that attention or the MLP adds to the residual stream.
struct BranchNorm {
    TensorView branch;     // (T, H), c
    TensorView weight;     // (H), c
    TensorView rstd;       // (T), F32
    TensorView gradWeight; // (H), F32
};

// Into scratch.branch.
Status normBranch(const LayerContext& c, const BranchNorm& norm, const BlockScratch& scratch)
{
    return c.ops->rmsNorm({norm.branch, {}, norm.weight, {}, scratch.branch, norm.rstd,
                              epsOf(*c.config), gainOf(*c.config)},
        *c.stream);
}

// `gradient`: that of the branch before its norm; without one, the stream's own.
Status branchGradient(const LayerContext& c, const BranchNorm& norm, const BlockScratch& scratch,
    const BlockBackward& backward, TensorView& gradient)
{
    gradient = c.config->branchNorms ? scratch.branch : backward.grad;
    if (!c.config->branchNorms)
        return {};
    return c.ops->rmsNormBackward(
        {backward.grad, norm.branch, norm.weight, norm.rstd, {}, gradient, norm.gradWeight,
            scratch.normPartial, backward.accumulate, gainOf(*c.config)},
        *c.stream);
}

// Up to the branch that is added to the residual stream.
Status forwardAttention(const LayerContext& c, const BlockTensors& w, const LayerInput& input,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    Ops& ops = *c.ops;
    Stream& stream = *c.stream;
    const ModelConfig& config = *c.config;
    MR_TRY(ops.rmsNorm(inputNorm(config, input, w.attnNorm, kept.normed1, kept.rstd1), stream));
    MR_TRY(project(c, scratch, &BlockAdapter::qkv, {kept.normed1, w.qkv, w.qkvBias, kept.qkv}));
    MR_TRY(placeHeads(c, w, kept));
    MR_TRY(ops.attention({kept.visibleQkv, c.batch.visibleFrom, kept.attention, kept.lse,
                             static_cast<int>(config.heads), static_cast<int>(config.kvHeads),
                             static_cast<int>(config.headDim), attentionScale(config), c.firstQuery,
                             attentionCap(config), c.batch.mostKeys},
        stream));
    const TensorView& branch = config.branchNorms ? kept.attnBranch : scratch.branch;
    MR_TRY(project(
        c, scratch, &BlockAdapter::attnOut, {kept.attention, w.attnOut, w.attnOutBias, branch}));
    if (!config.branchNorms)
        return {};
    return normBranch(c, {kept.attnBranch, w.attnBranchNorm, kept.attnBranchRstd, {}}, scratch);
}

// From `mid` to the activation that the last product reads. The norm adds the residual.
Status forwardMlp(const LayerContext& c, const BlockTensors& w, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    Ops& ops = *c.ops;
    Stream& stream = *c.stream;
    MR_TRY(ops.rmsNorm({scratch.branch, x, w.mlpNorm, kept.mid, kept.normed2, kept.rstd2,
                           epsOf(*c.config), gainOf(*c.config)},
        stream));
    MR_TRY(project(
        c, scratch, &BlockAdapter::gateUp, {kept.normed2, w.gateUp, w.gateUpBias, kept.gateUp}));
    return ops.swiglu({kept.gateUp, kept.activated, activationOf(*c.config)}, stream);
}

Status backwardMlp(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockTensors& g = backward.gradients;
    const TensorView& grad = backward.grad;
    Ops& ops = *c.ops;
    Stream& stream = *c.stream;
    TensorView branch;
    MR_TRY(branchGradient(c, {kept.mlpBranch, w.mlpBranchNorm, kept.mlpBranchRstd, g.mlpBranchNorm},
        scratch, backward, branch));
    MR_TRY(projectBack(c, scratch, &BlockAdapter::down, backward,
        {branch, kept.activated, g.down, g.downBias, c.productFor(g.down), backward.accumulate},
        {branch, w.down, scratch.gradActivated}));
    MR_TRY(ops.swigluBackward(
        {kept.gateUp, scratch.gradActivated, kept.gateUp, activationOf(*c.config)}, stream));
    MR_TRY(projectBack(c, scratch, &BlockAdapter::gateUp, backward,
        {kept.gateUp, kept.normed2, g.gateUp, g.gateUpBias, c.productFor(g.gateUp),
            backward.accumulate},
        {kept.gateUp, w.gateUp, scratch.gradNormed}));
    return ops.rmsNormBackward(
        {scratch.gradNormed, kept.mid, w.mlpNorm, kept.rstd2, grad, grad, g.mlpNorm,
            scratch.normPartial, backward.accumulate, gainOf(*c.config)},
        stream);
}

Status backwardAttention(const LayerContext& c, const BlockTensors& w, const BlockActivations& kept,
    const BlockScratch& scratch, const BlockBackward& backward)
{
    const BlockTensors& g = backward.gradients;
    Ops& ops = *c.ops;
    Stream& stream = *c.stream;
    const ModelConfig& config = *c.config;
    TensorView branch;
    MR_TRY(branchGradient(c,
        {kept.attnBranch, w.attnBranchNorm, kept.attnBranchRstd, g.attnBranchNorm}, scratch,
        backward, branch));
    MR_TRY(projectBack(c, scratch, &BlockAdapter::attnOut, backward,
        {branch, kept.attention, g.attnOut, g.attnOutBias, c.productFor(g.attnOut),
            backward.accumulate},
        {branch, w.attnOut, scratch.gradAttention}));
    MR_TRY(ops.attentionBackward(
        {kept.qkv, c.batch.visibleFrom, kept.attention, kept.lse, scratch.gradAttention,
            scratch.delta, scratch.gradQkv, static_cast<int>(config.heads),
            static_cast<int>(config.kvHeads), static_cast<int>(config.headDim),
            attentionScale(config), attentionCap(config), floatsOf(kept.gateUp), c.batch.mostKeys},
        stream));
    MR_TRY(backwardHeads(c, w, kept, scratch, backward));
    return projectBack(c, scratch, &BlockAdapter::qkv, backward,
        {scratch.gradQkv, kept.normed1, g.qkv, g.qkvBias, c.productFor(g.qkv), backward.accumulate},
        {scratch.gradQkv, w.qkv, scratch.gradNormed});
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
        view(SlotKind::DownBias), view(SlotKind::MlpBranchNorm)};
}

namespace {

// All of forwardBlock() that backward reads. The norm of the MLP's branch keeps something, too, so
// it is made with its product.
Status forwardToBranch(const LayerContext& context, const BlockTensors& weights,
    const LayerInput& input, const BlockActivations& kept, const BlockScratch& scratch)
{
    MR_TRY(forwardAttention(context, weights, input, kept, scratch));
    MR_TRY(forwardMlp(context, weights, input.x, kept, scratch));
    if (!context.config->branchNorms)
        return {};
    MR_TRY(project(context, scratch, &BlockAdapter::down,
        {kept.activated, weights.down, weights.downBias, kept.mlpBranch}));
    return normBranch(
        context, {kept.mlpBranch, weights.mlpBranchNorm, kept.mlpBranchRstd, {}}, scratch);
}

} // namespace

Status forwardBlock(const LayerContext& context, const BlockTensors& weights,
    const LayerInput& input, const TensorView& out, const BlockActivations& kept,
    const BlockScratch& scratch)
{
    MR_TRY(forwardToBranch(context, weights, input, kept, scratch));
    if (!context.config->branchNorms)
        MR_TRY(project(context, scratch, &BlockAdapter::down,
            {kept.activated, weights.down, weights.downBias, scratch.branch}));
    if (out.data == nullptr)
        return {};
    return context.ops->add({kept.mid, scratch.branch, out}, *context.stream);
}

Status recomputeBlock(const LayerContext& context, const BlockTensors& weights, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch)
{
    return forwardToBranch(context, weights, {x, {}, {}}, kept, scratch);
}

Status remakeActivations(const LayerContext& context, const BlockTensors& weights,
    const TensorView& x, const BlockActivations& kept, const BlockScratch& scratch)
{
    const float eps = epsOf(*context.config);
    const NormGain gain = gainOf(*context.config);
    Ops& ops = *context.ops;
    Stream& stream = *context.stream;
    MR_TRY(ops.rmsNorm({x, {}, weights.attnNorm, {}, kept.normed1, kept.rstd1, eps, gain}, stream));
    RmsNormArgs second{kept.mid, {}, weights.mlpNorm, {}, kept.normed2, kept.rstd2, eps, gain};
    if (context.config->branchNorms) {
        MR_TRY(normBranch(
            context, {kept.attnBranch, weights.attnBranchNorm, kept.attnBranchRstd, {}}, scratch));
        second.x = scratch.branch;
        second.residual = x;
        second.sum = kept.mid;
    }
    MR_TRY(ops.rmsNorm(second, stream));
    return ops.swiglu({kept.gateUp, kept.activated, activationOf(*context.config)}, stream);
}

Status backwardBlock(const LayerContext& context, const BlockTensors& weights, const TensorView& x,
    const BlockActivations& kept, const BlockScratch& scratch, const BlockBackward& backward)
{
    const TensorView& grad = backward.grad;
    MR_TRY(backwardMlp(context, weights, kept, scratch, backward));
    MR_TRY(backwardAttention(context, weights, kept, scratch, backward));
    return context.ops->rmsNormBackward({scratch.gradNormed, x, weights.attnNorm, kept.rstd1, grad,
                                            grad, backward.gradients.attnNorm, scratch.normPartial,
                                            backward.accumulate, gainOf(*context.config)},
        *context.stream);
}

} // namespace mr
