#include "bench/ptx_ops.h"

#include <array>
#include <vector>

namespace mr::bench {
namespace {

constexpr DType kCompute = DType::BF16;

// The rule of Qwen3.5 4B, which 9B has, too.
constexpr DeltaShape kDelta{16, 32, 128, 128};
constexpr std::int32_t kDocumentRows = 256;
constexpr int kGatedQueries = 16;
constexpr int kGatedKeys = 4;
constexpr int kGatedDim = 256;

// Blocks of the rule begin at documents, or at their chunks: those of one document run.
constexpr BlockSample kOneDocument{1, kDocumentRows / kRecurrentRows, 1};

bool hasState(const ModelShape& model)
{
    return model.hasState;
}

TensorView documents(OpRig& rig)
{
    std::vector<std::int32_t> from = ascending(kTokens);
    for (std::int32_t& value : from)
        value -= value % kDocumentRows;
    return rig.integers(from);
}

Status causalConv(OpRig& rig, const ModelShape& /*model*/)
{
    CausalConvArgs args;
    args.x = rig.read(kCompute, kTokens, kDelta.columns());
    args.weight = rig.read(kCompute, kDelta.columns(), 4);
    args.documentFrom = documents(rig);
    args.out = rig.written(kCompute, kTokens, kDelta.columns());
    args.history = rig.written(kCompute, 3, kDelta.columns());
    return rig.ops().causalConv(args, rig.stream());
}

Status causalConvBackward(OpRig& rig, const ModelShape& /*model*/)
{
    CausalConvBackwardArgs args;
    args.x = rig.read(kCompute, kTokens, kDelta.columns());
    args.weight = rig.read(kCompute, kDelta.columns(), 4);
    args.documentFrom = documents(rig);
    args.gradOut = rig.read(kCompute, kTokens, kDelta.columns());
    args.gradX = rig.written(kCompute, kTokens, kDelta.columns());
    args.gradWeight = rig.written(DType::F32, kDelta.columns(), 4);
    args.partial = rig.scratch(DType::F32, recurrentBlocks(kTokens), 4 * kDelta.columns());
    return rig.ops().causalConvBackward(args, rig.stream());
}

// Inputs of the delta rule in both directions.
template <typename Args>
void fillDelta(OpRig& rig, Args& args)
{
    args.mixed = rig.read(kCompute, kTokens, kDelta.columns());
    args.gates = rig.read(kCompute, kTokens, 2 * std::int64_t{kDelta.valueHeads});
    args.logDecay = flat(rig.read(kCompute, 1, kDelta.valueHeads));
    args.timeBias = flat(rig.read(kCompute, 1, kDelta.valueHeads));
    args.documentFrom = documents(rig);
    args.shape = kDelta;
}

Status gatedDelta(OpRig& rig, const ModelShape& /*model*/)
{
    GatedDeltaArgs args;
    fillDelta(rig, args);
    args.out = rig.written(kCompute, kTokens, kDelta.valueColumns());
    args.scratch = flat(rig.scratch(DType::F32, 1, deltaForwardScratch(kTokens, kDelta)));
    return rig.ops().gatedDelta(args, rig.stream());
}

// F32 scratch of these sizes.
TensorView cube(OpRig& rig, const std::array<std::int64_t, 4>& dims, int rank)
{
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i)
        count *= dims[static_cast<std::size_t>(i)];
    TensorView view = rig.scratch(DType::F32, 1, count);
    view.rank = rank;
    view.dims = dims;
    return view;
}

Status gatedDeltaBackward(OpRig& rig, const ModelShape& /*model*/)
{
    GatedDeltaBackwardArgs args;
    fillDelta(rig, args);
    args.gradOut = rig.read(kCompute, kTokens, kDelta.valueColumns());
    args.gradMixed = rig.written(kCompute, kTokens, kDelta.columns());
    args.gradGates = rig.written(kCompute, kTokens, 2 * std::int64_t{kDelta.valueHeads});
    args.gradLogDecay = flat(rig.written(DType::F32, 1, kDelta.valueHeads));
    args.gradTimeBias = flat(rig.written(DType::F32, 1, kDelta.valueHeads));
    args.borders =
        cube(rig, {recurrentBlocks(kTokens), kDelta.valueHeads, kDelta.keyDim, kDelta.valueDim}, 4);
    args.partial = cube(rig, {kDeltaPlanes, kTokens, kDelta.valueHeads, 0}, 3);
    args.scratch = flat(rig.scratch(DType::F32, 1, deltaScratch(kTokens, kDelta)));
    return rig.ops().gatedDeltaBackward(args, rig.stream());
}

Status gatedNorm(OpRig& rig, const ModelShape& /*model*/)
{
    GatedNormArgs args;
    args.x = rig.read(kCompute, kTokens, kDelta.valueColumns());
    args.gate = rig.read(kCompute, kTokens, kDelta.valueColumns());
    args.weight = flat(rig.read(kCompute, 1, kDelta.valueDim));
    args.out = rig.written(kCompute, kTokens, kDelta.valueColumns());
    args.rstd = rig.written(DType::F32, kTokens, kDelta.valueHeads);
    return rig.ops().gatedNorm(args, rig.stream());
}

Status gatedNormBackward(OpRig& rig, const ModelShape& /*model*/)
{
    GatedNormBackwardArgs args;
    args.gradOut = rig.read(kCompute, kTokens, kDelta.valueColumns());
    args.x = rig.read(kCompute, kTokens, kDelta.valueColumns());
    args.gate = rig.read(kCompute, kTokens, kDelta.valueColumns());
    args.weight = flat(rig.read(kCompute, 1, kDelta.valueDim));
    args.rstd = rig.read(DType::F32, kTokens, kDelta.valueHeads);
    args.gradX = rig.written(kCompute, kTokens, kDelta.valueColumns());
    args.gradGate = rig.written(kCompute, kTokens, kDelta.valueColumns());
    args.gradWeight = flat(rig.written(DType::F32, 1, kDelta.valueDim));
    args.partial =
        rig.scratch(DType::F32, recurrentBlocks(kTokens * kDelta.valueHeads), kDelta.valueDim);
    return rig.ops().gatedNormBackward(args, rig.stream());
}

TensorView joined(OpRig& rig)
{
    return rig.scratch(
        kCompute, kTokens, (2 * std::int64_t{kGatedQueries} + 2 * kGatedKeys) * kGatedDim);
}

Status splitQueries(OpRig& rig, const ModelShape& /*model*/)
{
    const std::int64_t cols = (std::int64_t{kGatedQueries} + 2 * kGatedKeys) * kGatedDim;
    rig.addLeastBytes(2 * kTokens * cols);
    return rig.ops().splitQueries({joined(rig), rig.written(kCompute, kTokens, cols), kGatedQueries,
                                      kGatedKeys, kGatedDim, false},
        rig.stream());
}

// k of Gemma 4 31B, which is v: a layer without a window has 32 heads and 4 of k, of 512.
Status copyColumns(OpRig& rig, const ModelShape& /*model*/)
{
    constexpr std::int64_t kQueries = 32 * 512;
    constexpr std::int64_t kKeys = 4 * 512;
    rig.addLeastBytes(2 * kTokens * kKeys);
    return rig.ops().copyColumns({rig.scratch(kCompute, kTokens, kQueries + kKeys),
                                     rig.scratch(kCompute, kTokens, kQueries + 2 * kKeys), kQueries,
                                     kQueries + kKeys, kKeys},
        rig.stream());
}

TensorView queryRows(OpRig& rig, TensorView (OpRig::*make)(DType, std::int64_t, std::int64_t))
{
    return (rig.*make)(kCompute, kTokens, std::int64_t{kGatedQueries} * kGatedDim);
}

Status gateHeads(OpRig& rig, const ModelShape& /*model*/)
{
    rig.addLeastBytes(2 * kTokens * kGatedQueries * kGatedDim);
    return rig.ops().gateHeads(
        {queryRows(rig, &OpRig::read), joined(rig), queryRows(rig, &OpRig::written), kGatedQueries,
            kGatedKeys, kGatedDim},
        rig.stream());
}

Status gateHeadsBackward(OpRig& rig, const ModelShape& /*model*/)
{
    rig.addLeastBytes(4 * kTokens * kGatedQueries * kGatedDim);
    return rig.ops().gateHeadsBackward(
        {queryRows(rig, &OpRig::read), queryRows(rig, &OpRig::read), joined(rig),
            queryRows(rig, &OpRig::written), joined(rig), kGatedQueries, kGatedKeys, kGatedDim},
        rig.stream());
}

constexpr CountedOp kOps[] = {
    {"causalConv", {4, 1, 1}, causalConv, hasState},
    {"causalConvBackward", {2, 1, 1}, causalConvBackward, hasState},
    {"gatedDelta", kOneDocument, gatedDelta, hasState},
    {"gatedDeltaBackward", kOneDocument, gatedDeltaBackward, hasState},
    {"gatedNorm", {4, 1}, gatedNorm, hasState},
    {"gatedNormBackward", {2, 1}, gatedNormBackward, hasState},
    {"splitQueries", {4, 1}, splitQueries, hasState},
    {"copyColumns", {4, 1}, copyColumns, hasState},
    {"gateHeads", {4, 1}, gateHeads, hasState},
    {"gateHeadsBackward", {4, 1}, gateHeadsBackward, hasState},
};

} // namespace

std::span<const CountedOp> recurrentOps()
{
    return kOps;
}

} // namespace mr::bench
