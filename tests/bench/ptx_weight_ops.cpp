#include "bench/ptx_ops.h"
#include "core/model/layout.h"

#include <cstring>
#include <vector>

namespace mr::bench {
namespace {

constexpr DType kCompute = DType::BF16;

// One number for each weight of a block's matrices.
TensorView blockOf(OpRig& rig, TensorView (OpRig::*make)(DType, std::int64_t, std::int64_t),
    DType type, const ModelShape& model)
{
    return flat((rig.*make)(type, 1, model.blockWeights()));
}

Status accumulate(OpRig& rig, const ModelShape& model)
{
    AccumulateArgs args;
    args.sum = blockOf(rig, &OpRig::updated, DType::F32, model);
    args.x = blockOf(rig, &OpRig::read, kCompute, model);
    return rig.ops().accumulate(args, rig.stream());
}

Status finishGradient(OpRig& rig, const ModelShape& model)
{
    return rig.ops().finishGradient({blockOf(rig, &OpRig::read, DType::F32, model), {},
                                        blockOf(rig, &OpRig::written, kCompute, model)},
        rig.stream());
}

Status normBlocks(OpRig& rig, const ModelShape& model)
{
    return rig.ops().normBlocks(
        {blockOf(rig, &OpRig::read, kCompute, model),
            flat(rig.written(DType::F32, 1, normBlockCount(model.blockWeights())))},
        rig.stream());
}

// The sums of all blocks of the model.
Status normJoin(OpRig& rig, const ModelShape& model)
{
    const std::int64_t blocks = model.layers * normBlockCount(model.blockWeights());
    return rig.ops().normJoin({flat(rig.read(DType::F32, 1, blocks)),
                                  flat(rig.scratch(DType::F64, 1, normChunkCount(blocks))),
                                  flat(rig.written(DType::U8, 1, sizeof(StepScalars))), 1.0},
        rig.stream());
}

// Finite gradients, which are not clipped.
TensorView scalars(OpRig& rig)
{
    const TensorView view = flat(rig.read(DType::U8, 1, sizeof(StepScalars)));
    const StepScalars values;
    std::memcpy(view.data, &values, sizeof values);
    return view;
}

Status adamw(OpRig& rig, const ModelShape& model)
{
    AdamwArgs args;
    args.high = blockOf(rig, &OpRig::updated, DType::U16, model);
    args.low = blockOf(rig, &OpRig::updated, DType::I16, model);
    args.m = blockOf(rig, &OpRig::updated, DType::F32, model);
    args.v = blockOf(rig, &OpRig::updated, DType::F32, model);
    args.grad = blockOf(rig, &OpRig::read, kCompute, model);
    args.scalars = scalars(rig);
    return rig.ops().adamw(args, rig.stream());
}

Status adamwCompact(OpRig& rig, const ModelShape& model)
{
    constexpr std::int64_t kGroup = 32; // elements with one pair of scales
    const std::int64_t groups = (model.blockWeights() + kGroup - 1) / kGroup;
    AdamwCompactArgs args;
    args.weight = blockOf(rig, &OpRig::updated, DType::U16, model);
    args.remainder = blockOf(rig, &OpRig::updated, DType::I8, model);
    args.m = blockOf(rig, &OpRig::updated, DType::I8, model);
    args.v = blockOf(rig, &OpRig::updated, DType::U8, model);
    args.mScale = flat(rig.updated(DType::F32, 1, groups));
    args.vScale = flat(rig.updated(DType::F32, 1, groups));
    args.grad = blockOf(rig, &OpRig::read, kCompute, model);
    args.scalars = scalars(rig);
    return rig.ops().adamwCompact(args, rig.stream());
}

// The gradient of gate or up, divided as in the update.
Status rowSquares(OpRig& rig, const ModelShape& model)
{
    RowSquaresArgs args;
    args.x = rig.read(DType::F32, model.intermediate, model.hidden);
    args.scalars = scalars(rig);
    args.rowRoots = flat(rig.read(DType::F32, 1, model.intermediate));
    args.columnRoots = flat(rig.read(DType::F32, 1, model.hidden));
    args.sums = flat(rig.written(DType::F32, 1, model.intermediate));
    return rig.ops().rowSquares(args, rig.stream());
}

Status columnSquares(OpRig& rig, const ModelShape& model)
{
    ColumnSquaresArgs args;
    args.x = rig.read(DType::F32, model.intermediate, model.hidden);
    args.scalars = scalars(rig);
    args.parts = rig.scratch(DType::F32, rowParts(model.intermediate), model.hidden);
    args.sums = flat(rig.written(DType::F32, 1, model.hidden));
    return rig.ops().columnSquares(args, rig.stream());
}

Status averageSquares(OpRig& rig, const ModelShape& model)
{
    AverageSquaresArgs args;
    args.rowSums = flat(rig.updated(DType::F32, 1, model.intermediate));
    args.columnSums = flat(rig.updated(DType::F32, 1, model.hidden));
    args.rows = flat(rig.updated(DType::F32, 1, model.intermediate));
    args.columns = flat(rig.updated(DType::F32, 1, model.hidden));
    args.scalars = scalars(rig);
    return rig.ops().averageSquares(args, rig.stream());
}

Status lightStepSize(OpRig& rig, const ModelShape& model)
{
    StepSizeArgs args;
    args.updateSums = flat(rig.read(DType::F32, 1, model.intermediate));
    args.size = flat(rig.written(DType::F32, 1, 1));
    args.count = model.intermediate * model.hidden;
    return rig.ops().lightStepSize(args, rig.stream());
}

Status projectionSigns(OpRig& rig, const ModelShape& model)
{
    return rig.ops().projectionSigns(
        {flat(rig.written(DType::F32, 1, model.hidden)), 3, 5}, rig.stream());
}

// The gradient of gate or up, which has more rows than columns.
Status projectGradient(OpRig& rig, const ModelShape& model)
{
    ProjectGradientArgs args;
    args.x = rig.read(DType::F32, model.intermediate, model.hidden);
    args.signs = flat(rig.read(DType::F32, 1, model.hidden));
    args.scalars = scalars(rig);
    args.sums = flat(rig.written(DType::F32, 1, model.intermediate));
    return rig.ops().projectGradient(args, rig.stream());
}

Status projectedStep(OpRig& rig, const ModelShape& model)
{
    ProjectedStepArgs args;
    args.projected = flat(rig.read(DType::F32, 1, model.intermediate));
    args.squareSums = flat(rig.read(DType::F32, 1, model.intermediate));
    args.first = flat(rig.updated(DType::F32, 1, model.intermediate));
    args.second = flat(rig.updated(DType::F32, 1, model.intermediate));
    args.norm = flat(rig.updated(DType::F32, 1, 1));
    args.size = flat(rig.written(DType::F32, 1, 1));
    args.scalars = scalars(rig);
    return rig.ops().projectedStep(args, rig.stream());
}

// Rows of gate or up.
Status selectRows(OpRig& rig, const ModelShape& model)
{
    const std::int64_t chosen = model.intermediate / 8;
    return rig.ops().selectRows({flat(rig.read(DType::F32, 1, model.intermediate)),
                                    flat(rig.scratch(DType::F32, 1, chosen)),
                                    flat(rig.written(DType::F32, 1, chosen)), scalars(rig)},
        rig.stream());
}

// A master of 24 bits, all of whose rows are chosen.
Status rowAdamw(OpRig& rig, const ModelShape& model)
{
    const std::int64_t count = model.intermediate * model.hidden;
    RowAdamwArgs args;
    args.high = flat(rig.updated(DType::U16, 1, count));
    args.low = flat(rig.updated(DType::I8, 1, count));
    args.grad = flat(rig.read(DType::F32, 1, count));
    args.numbers = flat(rig.read(DType::F32, 1, model.intermediate));
    for (std::int64_t row = 0; row < model.intermediate; ++row)
        args.numbers.as<float>()[row] = static_cast<float>(row);
    args.m = rig.updated(DType::F32, model.intermediate, model.hidden);
    args.v = rig.updated(DType::F32, model.intermediate, model.hidden);
    args.scalars = scalars(rig);
    args.cols = model.hidden;
    return rig.ops().rowAdamw(args, rig.stream());
}

// A master of 24 bits.
Status lightUpdate(OpRig& rig, const ModelShape& model)
{
    const std::int64_t count = model.intermediate * model.hidden;
    LightUpdateArgs args;
    args.high = flat(rig.updated(DType::U16, 1, count));
    args.low = flat(rig.updated(DType::I8, 1, count));
    args.grad = flat(rig.read(DType::F32, 1, count));
    args.rowRoots = flat(rig.read(DType::F32, 1, model.intermediate));
    args.columnRoots = flat(rig.read(DType::F32, 1, model.hidden));
    args.size = flat(rig.read(DType::F32, 1, 1));
    args.scalars = scalars(rig);
    args.cols = model.hidden;
    return rig.ops().lightUpdate(args, rig.stream());
}

Status join(OpRig& rig, const ModelShape& model)
{
    return rig.ops().join({blockOf(rig, &OpRig::read, DType::U16, model),
                              blockOf(rig, &OpRig::read, DType::I16, model),
                              blockOf(rig, &OpRig::written, DType::F32, model)},
        rig.stream());
}

Status split(OpRig& rig, const ModelShape& model)
{
    return rig.ops().split({blockOf(rig, &OpRig::read, DType::F32, model),
                               blockOf(rig, &OpRig::written, DType::U16, model),
                               blockOf(rig, &OpRig::written, DType::I16, model)},
        rig.stream());
}

Status cast(OpRig& rig, const ModelShape& model)
{
    return rig.ops().cast({blockOf(rig, &OpRig::read, DType::F32, model),
                              blockOf(rig, &OpRig::written, kCompute, model)},
        rig.stream());
}

// Activations of the MLP, as they lie and transposed.
Status quantize(OpRig& rig, const ModelShape& model)
{
    QuantizeArgs args;
    args.x = rig.read(kCompute, kTokens, model.intermediate);
    args.codes = rig.written(DType::E4M3, kTokens, model.intermediate);
    args.turned = rig.written(DType::E4M3, model.intermediate, kTokens);
    args.scale = flat(rig.written(DType::F32, 1, 1));
    args.partial = flat(rig.scratch(DType::I32, 1, kQuantizePartials));
    return rig.ops().quantize(args, rig.stream());
}

Status columnEnergy(OpRig& rig, const ModelShape& model)
{
    return rig.ops().columnEnergy({rig.read(kCompute, model.intermediate, model.hidden),
                                      flat(rig.written(DType::F32, 1, model.hidden))},
        rig.stream());
}

// Every tenth column, the share of urgent columns.
TensorView tenthOfColumns(OpRig& rig, const ModelShape& model)
{
    std::vector<std::int32_t> columns = ascending(model.hidden / 10);
    for (std::int32_t& column : columns)
        column = 10 * column + column % 7;
    return rig.integers(columns);
}

Status gatherColumns(OpRig& rig, const ModelShape& model)
{
    const TensorView columns = tenthOfColumns(rig, model);
    const TensorView wide = rig.scratch(kCompute, model.intermediate, model.hidden);
    return rig.ops().gatherColumns(
        {wide, columns, rig.updated(kCompute, model.intermediate, columns.count())}, rig.stream());
}

Status scatterColumns(OpRig& rig, const ModelShape& model)
{
    const TensorView columns = tenthOfColumns(rig, model);
    const TensorView wide = rig.scratch(kCompute, model.intermediate, model.hidden);
    return rig.ops().scatterColumns(
        {rig.updated(kCompute, model.intermediate, columns.count()), columns, wide}, rig.stream());
}

constexpr CountedOp kOps[] = {
    {"accumulate", {4, 1}, accumulate, nullptr},
    {"finishGradient", {4, 1}, finishGradient, nullptr},
    {"normBlocks", {4, 1}, normBlocks, nullptr},
    {"normJoin", {4, 1}, normJoin, nullptr},
    {"adamw", {4, 1}, adamw, nullptr},
    {"adamwCompact", {4, 1}, adamwCompact, nullptr},
    {"rowSquares", {4, 1}, rowSquares, nullptr},
    {"columnSquares", {4, 1}, columnSquares, nullptr},
    {"averageSquares", {4, 1}, averageSquares, nullptr},
    {"lightStepSize", {4, 1}, lightStepSize, nullptr},
    {"projectionSigns", {4, 1}, projectionSigns, nullptr},
    {"projectGradient", {4, 1}, projectGradient, nullptr},
    {"projectedStep", {4, 1}, projectedStep, nullptr},
    {"selectRows", {4, 1}, selectRows, nullptr},
    {"rowAdamw", {4, 1}, rowAdamw, nullptr},
    {"lightUpdate", {4, 1}, lightUpdate, nullptr},
    {"join", {4, 1}, join, nullptr},
    {"split", {4, 1}, split, nullptr},
    {"cast", {4, 1}, cast, nullptr},
    {"quantize", {4, 1}, quantize, nullptr},
    {"columnEnergy", {1, 1}, columnEnergy, nullptr},
    {"gatherColumns", {4, 1}, gatherColumns, nullptr},
    {"scatterColumns", {4, 1}, scatterColumns, nullptr},
};

} // namespace

std::span<const CountedOp> weightOps()
{
    return kOps;
}

} // namespace mr::bench
