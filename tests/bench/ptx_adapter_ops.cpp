#include "bench/ptx_ops.h"

namespace mr::bench {
namespace {

constexpr DType kCompute = DType::BF16;
constexpr std::int64_t kRank = 16;

// The gate's columns of the product of gate and up, each moved `passes` times.
ColumnWindow gateColumns(OpRig& rig, const ModelShape& model, int passes)
{
    const ColumnWindow gate{
        rig.scratch(kCompute, kTokens, 2 * model.intermediate), 0, model.intermediate};
    rig.addLeastBytes(passes * kTokens * gate.count * 2);
    return gate;
}

// The largest matrix of a block: gate and up. Codes are random, so a warp looks up as many places
// of the tables as it can.
Status dequantizeNf4(OpRig& rig, const ModelShape& model)
{
    const std::int64_t count = 2 * model.intermediate * model.hidden;
    const std::int64_t blocks = count / kNf4Block;
    DequantizeNf4Args args;
    args.codes = rig.bytes(count / 2);
    args.absmax = rig.bytes(blocks);
    args.tables = flat(rig.read(DType::F32, 1, kNf4Fixed + (blocks + kNf4Nested - 1) / kNf4Nested));
    args.out = flat(rig.written(kCompute, 1, count));
    return rig.ops().dequantizeNf4(args, rig.stream());
}

// The input of q, k and v, or of gate and up.
Status dropout(OpRig& rig, const ModelShape& model)
{
    return rig.ops().dropout({rig.read(kCompute, kTokens, model.hidden),
                                 rig.written(kCompute, kTokens, model.hidden), {1, 2, 0.1}, false},
        rig.stream());
}

Status adapterNorms(OpRig& rig, const ModelShape& model)
{
    AdapterNormsArgs args;
    args.weight = rig.read(kCompute, model.intermediate, model.hidden);
    args.a = rig.read(kCompute, kRank, model.hidden);
    args.b = rig.read(kCompute, model.intermediate, kRank);
    args.magnitude = flat(rig.read(kCompute, 1, model.intermediate));
    args.norms = flat(rig.written(DType::F32, 1, model.intermediate));
    args.factors = flat(rig.written(DType::F32, 1, model.intermediate));
    return rig.ops().adapterNorms(args, rig.stream());
}

// In place, as in the forward pass.
Status scaleColumns(OpRig& rig, const ModelShape& model)
{
    const ColumnWindow gate = gateColumns(rig, model, 2);
    return rig.ops().scaleColumns(
        {gate, flat(rig.read(DType::F32, 1, model.intermediate)), {}, gate}, rig.stream());
}

Status columnDots(OpRig& rig, const ModelShape& model)
{
    return rig.ops().columnDots({gateColumns(rig, model, 1), gateColumns(rig, model, 1),
                                    flat(rig.read(DType::F32, 1, model.intermediate)),
                                    flat(rig.written(DType::F32, 1, model.intermediate)), false},
        rig.stream());
}

constexpr CountedOp kOps[] = {
    {"dequantizeNf4", {4, 1}, dequantizeNf4, nullptr},
    {"dropout", {4, 1}, dropout, nullptr},
    {"adapterNorms", {4, 1}, adapterNorms, nullptr},
    {"scaleColumns", {4, 1}, scaleColumns, nullptr},
    {"columnDots", {1, 1}, columnDots, nullptr},
};

} // namespace

std::span<const CountedOp> adapterOps()
{
    return kOps;
}

} // namespace mr::bench
