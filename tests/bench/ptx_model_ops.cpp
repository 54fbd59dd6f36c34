#include "bench/ptx_ops.h"
#include "core/model/layout.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace mr::bench {
namespace {

constexpr DType kCompute = DType::BF16;

bool hasWindow(const ModelShape& model)
{
    return model.window > 0;
}

bool normsHeads(const ModelShape& model)
{
    return model.normsHeads();
}

bool normsNoHeads(const ModelShape& model)
{
    return !model.normsHeads();
}

NormGain gainOf(const ModelShape& model)
{
    return model.normsHeads() ? NormGain::OnePlusWeight : NormGain::Weight;
}

// Text repeats its words: token v is about as frequent as 1 / v.
std::vector<std::int32_t> someTokens(const ModelShape& model)
{
    std::mt19937 random(1); // NOLINT: the same in every run
    std::uniform_real_distribution<double> share(0.0, std::log(static_cast<double>(model.vocab)));
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(kTokens));
    for (std::int32_t& token : tokens)
        token = static_cast<std::int32_t>(std::exp(share(random))) - 1;
    return tokens;
}

std::int64_t distinct(std::vector<std::int32_t> values)
{
    std::ranges::sort(values);
    return std::distance(values.begin(), std::ranges::unique(values).begin());
}

Status embed(OpRig& rig, const ModelShape& model)
{
    const std::vector<std::int32_t> tokens = someTokens(model);
    EmbedArgs args;
    args.ids = rig.integers(tokens);
    args.table = rig.scratch(kCompute, model.vocab, model.hidden);
    rig.addLeastBytes(distinct(tokens) * model.hidden * 2);
    args.out = rig.written(kCompute, kTokens, model.hidden);
    args.scale = model.isGemma ? std::sqrt(static_cast<float>(model.hidden)) : 1.0F;
    return rig.ops().embed(args, rig.stream());
}

// The input of a block as it waits for backward, and back.
Status encodeInputs(OpRig& rig, const ModelShape& model)
{
    return rig.ops().encodeInputs(
        {rig.read(kCompute, kTokens, model.hidden), rig.written(DType::I8, kTokens, model.hidden),
            rig.written(DType::F32, kTokens, codedGroups(model.hidden))},
        rig.stream());
}

Status decodeInputs(OpRig& rig, const ModelShape& model)
{
    return rig.ops().decodeInputs({rig.read(DType::I8, kTokens, model.hidden),
                                      rig.read(DType::F32, kTokens, codedGroups(model.hidden)),
                                      rig.written(kCompute, kTokens, model.hidden)},
        rig.stream());
}

Status embedBackward(OpRig& rig, const ModelShape& model)
{
    const std::vector<std::int32_t> tokens = someTokens(model);
    std::vector<std::int32_t> order = ascending(kTokens);
    std::ranges::stable_sort(
        order, {}, [&](std::int32_t at) { return tokens[static_cast<std::size_t>(at)]; });
    EmbedBackwardArgs args;
    args.ids = rig.integers(tokens);
    args.order = rig.integers(order);
    args.gradOut = rig.read(kCompute, kTokens, model.hidden);
    args.gradTable = rig.written(DType::F32, model.vocab, model.hidden);
    return rig.ops().embedBackward(args, rig.stream());
}

Status rmsNorm(OpRig& rig, const ModelShape& model)
{
    RmsNormArgs args;
    args.x = rig.read(kCompute, kTokens, model.hidden);
    args.residual = rig.read(kCompute, kTokens, model.hidden);
    args.weight = flat(rig.read(kCompute, 1, model.hidden));
    args.sum = rig.written(kCompute, kTokens, model.hidden);
    args.out = rig.written(kCompute, kTokens, model.hidden);
    args.rstd = flat(rig.written(DType::F32, 1, kTokens));
    args.gain = gainOf(model);
    return rig.ops().rmsNorm(args, rig.stream());
}

Status rmsNormBackward(OpRig& rig, const ModelShape& model)
{
    RmsNormBackwardArgs args;
    args.gradOut = rig.read(kCompute, kTokens, model.hidden);
    args.x = rig.read(kCompute, kTokens, model.hidden);
    args.weight = flat(rig.read(kCompute, 1, model.hidden));
    args.rstd = flat(rig.read(DType::F32, 1, kTokens));
    args.gradResidual = rig.read(kCompute, kTokens, model.hidden);
    args.gradX = rig.written(kCompute, kTokens, model.hidden);
    args.gradWeight = flat(rig.written(DType::F32, 1, model.hidden));
    args.partial = rig.scratch(DType::F32, kTokens / kNormRowBlock, model.hidden);
    args.gain = gainOf(model);
    return rig.ops().rmsNormBackward(args, rig.stream());
}

Status biasGradient(OpRig& rig, const ModelShape& model)
{
    return rig.ops().biasGradient({rig.read(kCompute, kTokens, model.projected()),
                                      flat(rig.written(DType::F32, 1, model.projected()))},
        rig.stream());
}

Status rope(OpRig& rig, const ModelShape& model)
{
    const int heads = model.heads + model.kvHeads;
    RopeArgs args;
    args.x = rig.scratch(kCompute, kTokens, model.projected());
    rig.addLeastBytes(2 * kTokens * heads * model.headDim * 2);
    args.positions = rig.integers(ascending(kTokens));
    args.cosTable = rig.read(DType::F32, kTokens, model.headDim / 2);
    args.sinTable = rig.read(DType::F32, kTokens, model.headDim / 2);
    args.heads = heads;
    args.headDim = model.headDim;
    args.rotaryDim = model.headDim;
    return rig.ops().rope(args, rig.stream());
}

// Fills the arguments that forward and backward of normed heads share; `projected` is written or
// read.
template <typename Args>
void fillHeads(OpRig& rig, const ModelShape& model, Args& args)
{
    const auto side = [&](std::int64_t heads) {
        HeadNorm norm;
        norm.projected = rig.read(kCompute, kTokens, heads * model.headDim);
        norm.rstd = rig.read(DType::F32, kTokens, heads);
        norm.weight = flat(rig.read(kCompute, 1, model.headDim));
        return norm;
    };
    rig.addLeastBytes(2 * kTokens * (model.heads + model.kvHeads) * model.headDim * 2);
    args.queries = side(model.heads);
    args.keys = side(model.kvHeads);
    args.positions = rig.integers(ascending(kTokens));
    args.cosTable = rig.read(DType::F32, kTokens, model.headDim / 2);
    args.sinTable = rig.read(DType::F32, kTokens, model.headDim / 2);
    args.heads = model.heads;
    args.kvHeads = model.kvHeads;
    args.headDim = model.headDim;
    args.rotaryDim = model.headDim;
    args.gain = gainOf(model);
}

Status headNormRope(OpRig& rig, const ModelShape& model)
{
    HeadNormRopeArgs args;
    args.qkv = rig.scratch(kCompute, kTokens, model.projected());
    fillHeads(rig, model, args);
    return rig.ops().headNormRope(args, rig.stream());
}

Status headNormRopeBackward(OpRig& rig, const ModelShape& model)
{
    HeadNormRopeBackwardArgs args;
    args.gradQkv = rig.scratch(kCompute, kTokens, model.projected());
    fillHeads(rig, model, args);
    args.gradQueryWeight = flat(rig.written(DType::F32, 1, model.headDim));
    args.gradKeyWeight = flat(rig.written(DType::F32, 1, model.headDim));
    args.partial = rig.scratch(
        DType::F32, headNormPartials(kTokens, model.heads, model.kvHeads), model.headDim);
    return rig.ops().headNormRopeBackward(args, rig.stream());
}

// visibleFrom: one sequence, in which a query sees all keys before it or those of a window.
TensorView visible(OpRig& rig, std::int64_t window)
{
    std::vector<std::int32_t> from = ascending(kTokens);
    for (std::int32_t& value : from)
        value = window > 0 ? std::max(0, value - static_cast<std::int32_t>(window) + 1) : 0;
    return rig.integers(from);
}

Status attend(OpRig& rig, const ModelShape& model, std::int64_t window)
{
    const std::int64_t columns = std::int64_t{model.heads} * model.headDim;
    AttentionArgs args;
    args.qkv = rig.read(kCompute, kTokens, model.projected());
    args.visibleFrom = visible(rig, window);
    args.out = rig.written(kCompute, kTokens, columns);
    args.lse = rig.written(DType::F32, kTokens, model.heads);
    args.heads = model.heads;
    args.kvHeads = model.kvHeads;
    args.headDim = model.headDim;
    args.scale = 1.0F / std::sqrt(static_cast<float>(model.headDim));
    args.mostKeys = window;
    return rig.ops().attention(args, rig.stream());
}

Status attendBackward(OpRig& rig, const ModelShape& model, std::int64_t window)
{
    const std::int64_t columns = std::int64_t{model.heads} * model.headDim;
    AttentionBackwardArgs args;
    args.qkv = rig.read(kCompute, kTokens, model.projected());
    args.visibleFrom = visible(rig, window);
    args.out = rig.read(kCompute, kTokens, columns);
    args.lse = rig.read(DType::F32, kTokens, model.heads);
    args.gradOut = rig.read(kCompute, kTokens, columns);
    args.delta = rig.scratch(DType::F32, kTokens, model.heads);
    args.gradQkv = rig.written(kCompute, kTokens, model.projected());
    args.heads = model.heads;
    args.kvHeads = model.kvHeads;
    args.headDim = model.headDim;
    args.scale = 1.0F / std::sqrt(static_cast<float>(model.headDim));
    args.partial = flat(rig.scratch(
        DType::F32, 1, attentionPartials(kTokens, model.heads, model.kvHeads, model.headDim)));
    args.mostKeys = window;
    return rig.ops().attentionBackward(args, rig.stream());
}

Status attention(OpRig& rig, const ModelShape& model)
{
    return attend(rig, model, 0);
}

Status windowAttention(OpRig& rig, const ModelShape& model)
{
    return attend(rig, model, model.window);
}

Status attentionBackward(OpRig& rig, const ModelShape& model)
{
    return attendBackward(rig, model, 0);
}

Status windowAttentionBackward(OpRig& rig, const ModelShape& model)
{
    return attendBackward(rig, model, model.window);
}

GateActivation activationOf(const ModelShape& model)
{
    return model.isGemma ? GateActivation::GeluTanh : GateActivation::Silu;
}

Status swiglu(OpRig& rig, const ModelShape& model)
{
    return rig.ops().swiglu(
        {rig.read(kCompute, kTokens, 2 * model.intermediate),
            rig.written(kCompute, kTokens, model.intermediate), activationOf(model)},
        rig.stream());
}

Status swigluBackward(OpRig& rig, const ModelShape& model)
{
    return rig.ops().swigluBackward(
        {rig.read(kCompute, kTokens, 2 * model.intermediate),
            rig.read(kCompute, kTokens, model.intermediate),
            rig.written(kCompute, kTokens, 2 * model.intermediate), activationOf(model)},
        rig.stream());
}

Status add(OpRig& rig, const ModelShape& model)
{
    return rig.ops().add(
        {rig.read(kCompute, kTokens, model.hidden), rig.read(kCompute, kTokens, model.hidden),
            rig.written(kCompute, kTokens, model.hidden)},
        rig.stream());
}

Status scale(OpRig& rig, const ModelShape& model)
{
    return rig.ops().scale({rig.read(kCompute, kTokens, model.hidden),
                               rig.written(kCompute, kTokens, model.hidden), 0.22F},
        rig.stream());
}

// A chunk of rows, as many as a step takes at a time.
Status crossEntropy(OpRig& rig, const ModelShape& model)
{
    const std::int64_t rows = headChunkRows(kTokens, model.vocab);
    std::vector<std::int32_t> targets = someTokens(model);
    targets.resize(static_cast<std::size_t>(rows));
    CrossEntropyArgs args;
    args.logits = rig.read(DType::F32, rows, model.vocab);
    args.targets = rig.integers(targets);
    args.losses = flat(rig.written(DType::F32, 1, rows));
    args.gradLogits = rig.written(kCompute, rows, model.vocab);
    args.scale = 1.0F / static_cast<float>(kTokens);
    return rig.ops().crossEntropy(args, rig.stream());
}

// A chunk of rows with a part of the vocabulary.
Status softmaxPart(OpRig& rig, const ModelShape& model)
{
    const std::int64_t rows = headChunkRows(kTokens, model.vocab);
    const std::int64_t parts = (model.vocab + kHeadPart - 1) / kHeadPart;
    SoftmaxPartArgs args;
    args.logits = rig.read(DType::F32, rows, kHeadPart);
    args.targets = rig.integers(std::vector<std::int32_t>(static_cast<std::size_t>(rows), 0));
    args.tops = rig.written(DType::F32, rows, parts);
    args.sums = rig.written(DType::F32, rows, parts);
    args.targetLogits = flat(rig.written(DType::F32, 1, rows));
    return rig.ops().softmaxPart(args, rig.stream());
}

Status joinSoftmax(OpRig& rig, const ModelShape& model)
{
    const std::int64_t rows = headChunkRows(kTokens, model.vocab);
    const std::int64_t parts = (model.vocab + kHeadPart - 1) / kHeadPart;
    JoinSoftmaxArgs args;
    args.tops = rig.read(DType::F32, rows, parts);
    args.sums = rig.read(DType::F32, rows, parts);
    args.targets = rig.integers(std::vector<std::int32_t>(static_cast<std::size_t>(rows), 0));
    args.targetLogits = flat(rig.read(DType::F32, 1, rows));
    for (TensorView* view : {&args.top, &args.total, &args.losses})
        *view = flat(rig.written(DType::F32, 1, rows));
    return rig.ops().joinSoftmax(args, rig.stream());
}

Status softmaxGradient(OpRig& rig, const ModelShape& model)
{
    const std::int64_t rows = headChunkRows(kTokens, model.vocab);
    SoftmaxGradientArgs args;
    args.logits = rig.read(DType::F32, rows, kHeadPart);
    args.targets = rig.integers(std::vector<std::int32_t>(static_cast<std::size_t>(rows), 0));
    args.top = flat(rig.read(DType::F32, 1, rows));
    args.total = flat(rig.read(DType::F32, 1, rows));
    args.gradLogits = rig.written(kCompute, rows, kHeadPart);
    args.scale = 1.0F / static_cast<float>(kTokens);
    return rig.ops().softmaxGradient(args, rig.stream());
}

Status sum(OpRig& rig, const ModelShape& /*model*/)
{
    return rig.ops().sum(
        {flat(rig.read(DType::F32, 1, kTokens)), flat(rig.written(DType::F64, 1, 1))},
        rig.stream());
}

// Blocks of a turn of rmsNormBackward: kNormRowBlock rows and two blocks of their columns.
constexpr BlockSample kOneTurn{1, 66};
// Attention runs eight tiles of one head: heads differ in nothing, and without a window the time of
// a tile grows evenly.
constexpr BlockSample kOneHead{1, 1, 8};

constexpr CountedOp kOps[] = {
    {"embed", {16, 1}, embed, nullptr},
    {"rmsNorm", {4, 1}, rmsNorm, nullptr},
    {"rope", {4, 1}, rope, normsNoHeads},
    {"headNormRope", {8, 1}, headNormRope, normsHeads},
    {"attention", kOneHead, attention, nullptr},
    {"attention of a window", kOneHead, windowAttention, hasWindow},
    {"swiglu", {4, 1}, swiglu, nullptr},
    {"add", {4, 1}, add, nullptr},
    {"scale", {4, 1}, scale, nullptr},
    {"crossEntropy", {2, 1}, crossEntropy, nullptr},
    {"softmaxPart", {2, 1}, softmaxPart, nullptr},
    {"joinSoftmax", {1, 1}, joinSoftmax, nullptr},
    {"softmaxGradient", {2, 1}, softmaxGradient, nullptr},
    {"sum", {1, 1}, sum, nullptr},
    {"swigluBackward", {4, 1}, swigluBackward, nullptr},
    {"attentionBackward", kOneHead, attentionBackward, nullptr},
    {"attentionBackward of a window", kOneHead, windowAttentionBackward, hasWindow},
    {"headNormRopeBackward", {8, 1}, headNormRopeBackward, normsHeads},
    {"biasGradient", {1, 1}, biasGradient, [](const ModelShape& model) { return model.hasBias; }},
    {"rmsNormBackward", kOneTurn, rmsNormBackward, nullptr},
    {"embedBackward", {256, 1}, embedBackward, nullptr},
    {"encodeInputs", {4, 1}, encodeInputs, nullptr},
    {"decodeInputs", {4, 1}, decodeInputs, nullptr},
};

} // namespace

std::span<const CountedOp> modelOps()
{
    return kOps;
}

} // namespace mr::bench
