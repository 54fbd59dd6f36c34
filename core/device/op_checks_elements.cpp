// The checks of elementwise ops, of norms and updates, and of ops that pick columns.

#include "core/device/op_checker.h"
#include "core/device/op_checks.h"

#include <utility>

namespace mr {

using checks::Checker;
using checks::isCompute;

Status checkAdd(const AddArgs& a)
{
    return Checker("add")
        .leads("a", a.a, a.a.rank)
        .holds(a.b.dtype == a.a.dtype && a.out.dtype == a.a.dtype && isCompute(a.a.dtype),
            "a, b and out must have one type, F32 or BF16")
        .holds(a.b.count() == a.a.count() && a.out.count() == a.a.count(),
            "a, b and out must have the same count")
        .holds((a.b.data && a.out.data) || a.a.count() == 0, "b or out has no memory")
        .status();
}

Status checkScale(const ScaleArgs& a)
{
    return Checker("scale")
        .leads("x", a.x, a.x.rank)
        .holds(a.out.dtype == a.x.dtype && isCompute(a.x.dtype),
            "x and out must have one type, F32 or BF16")
        .holds(a.out.count() == a.x.count(), "x and out must have the same count")
        .holds(a.out.data || a.x.count() == 0, "out has no memory")
        .status();
}

Status checkDropout(const DropoutArgs& a)
{
    return Checker("dropout")
        .leads("x", a.x, a.x.rank)
        .holds(a.out.dtype == a.x.dtype, "x and out must have one type, F32 or BF16")
        .holds(a.out.count() == a.x.count(), "x and out must have the same count")
        .holds(a.out.data || a.x.count() == 0, "out has no memory")
        .holds(
            a.draw.probability >= 0.0 && a.draw.probability < 1.0, "probability must be in [0, 1)")
        .status();
}

Status checkAccumulate(const AccumulateArgs& a)
{
    return Checker("accumulate")
        .leads("sum", a.sum, 1, true)
        .holds(isCompute(a.x.dtype), "x must be F32 or BF16")
        .tensor("x", a.x, a.x.dtype, {a.sum.dims[0]})
        .optional("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .holds(a.keep >= 0.0F && a.keep <= 1.0F, "keep must be in [0, 1]")
        .status();
}

Status checkFinishGradient(const FinishGradientArgs& a)
{
    const std::int64_t n = a.sum.dims[0];
    return Checker("finishGradient")
        .leads("sum", a.sum, 1)
        .optional("second", a.second, DType::F32, {n})
        .holds(isCompute(a.out.dtype), "out must be F32 or BF16")
        .holds(a.sum.dtype == DType::F32 || (a.out.dtype == a.sum.dtype && !a.second.data),
            "a sum in BF16 has no second, and out is BF16")
        .tensor("out", a.out, a.out.dtype, {n})
        .holds(a.out.data != a.sum.data || a.out.dtype == DType::F32 || n == 0,
            "out may be sum only as F32")
        .status();
}

Status checkNormBlocks(const NormBlocksArgs& a)
{
    return Checker("normBlocks")
        .leads("x", a.x, 1)
        .tensor("blockSums", a.blockSums, DType::F32, {(a.x.dims[0] + 1023) / 1024})
        .status();
}

Status checkNormJoin(const NormJoinArgs& a)
{
    return Checker("normJoin")
        .leads("blockSums", a.blockSums, 1, true)
        .tensor("chunkSums", a.chunkSums, DType::F64, {(a.blockSums.dims[0] + 1023) / 1024})
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .holds(a.clipNorm >= 0.0, "clipNorm must not be negative")
        .status();
}

Status checkAdamw(const AdamwArgs& a)
{
    const std::int64_t n = a.grad.dims[0];
    return Checker("adamw")
        .leads("grad", a.grad, 1)
        .tensor("high", a.high, DType::U16, {n})
        .tensor("low", a.low, DType::I16, {n})
        .tensor("m", a.m, DType::F32, {n})
        .tensor("v", a.v, DType::F32, {n})
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .status();
}

Status checkAdamwCompact(const AdamwCompactArgs& a)
{
    const std::int64_t n = a.grad.dims[0];
    const std::int64_t groups = (n + 31) / 32;
    return Checker("adamwCompact")
        .leads("grad", a.grad, 1)
        .tensor("weight", a.weight, DType::U16, {n})
        .tensor("remainder", a.remainder, DType::I8, {n})
        .tensor("m", a.m, DType::I8, {n})
        .tensor("v", a.v, DType::U8, {n})
        .tensor("mScale", a.mScale, DType::F32, {groups})
        .tensor("vScale", a.vScale, DType::F32, {groups})
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .status();
}

Status checkJoin(const JoinArgs& a)
{
    const std::int64_t n = a.out.dims[0];
    return Checker("join")
        .leads("out", a.out, 1, true)
        .tensor("high", a.high, DType::U16, {n})
        .tensor("low", a.low, DType::I16, {n})
        .status();
}

Status checkSplit(const SplitArgs& a)
{
    const std::int64_t n = a.value.dims[0];
    return Checker("split")
        .leads("value", a.value, 1, true)
        .tensor("high", a.high, DType::U16, {n})
        .tensor("low", a.low, DType::I16, {n})
        .status();
}

Status checkCast(const CastArgs& a)
{
    return Checker("cast")
        .leads("from", a.from, a.from.rank)
        .leads("to", a.to, a.to.rank)
        .holds(a.from.dtype != a.to.dtype, "from and to have the same type")
        .holds(a.from.count() == a.to.count(), "from and to must have the same count")
        .holds(a.from.data != a.to.data || a.to.count() == 0, "to must not be from")
        .status();
}

namespace {

Status checkCoded(const char* op, const char* name, const TensorView& values,
    const TensorView& codes, const TensorView& scales)
{
    const auto& [rows, cols] = std::pair(values.dims[0], values.dims[1]);
    return Checker(op)
        .leads(name, values, 2)
        .tensor("codes", codes, DType::I8, {rows, cols})
        .tensor("scales", scales, DType::F32, {rows, codedGroups(cols)})
        .status();
}

} // namespace

Status checkEncodeInputs(const EncodeInputsArgs& a)
{
    return checkCoded("encodeInputs", "x", a.x, a.codes, a.scales);
}

Status checkDecodeInputs(const DecodeInputsArgs& a)
{
    return checkCoded("decodeInputs", "out", a.out, a.codes, a.scales);
}

Status checkDequantizeNf4(const DequantizeNf4Args& a)
{
    const std::int64_t n = a.out.dims[0];
    const std::int64_t blocks = (n + kNf4Block - 1) / kNf4Block;
    return Checker("dequantizeNf4")
        .leads("out", a.out, 1)
        .tensor("codes", a.codes, DType::U8, {(n + 1) / 2})
        .tensor("absmax", a.absmax, DType::U8, {blocks})
        .tensor(
            "tables", a.tables, DType::F32, {kNf4Fixed + (blocks + kNf4Nested - 1) / kNf4Nested})
        .status();
}

Status checkFill(const FillArgs& a)
{
    return Checker("fill").leads("out", a.out, a.out.rank).status();
}

Status checkSoftcap(const SoftcapArgs& a)
{
    return Checker("softcap")
        .leads("x", a.x, a.x.rank, true)
        .holds(a.cap > 0.0F, "cap must be above 0")
        .status();
}

Status checkColumnEnergy(const ColumnEnergyArgs& a)
{
    return Checker("columnEnergy")
        .leads("grad", a.grad, 2)
        .tensor("energy", a.energy, DType::F32, {a.grad.dims[1]})
        .status();
}

Status checkGatherColumns(const GatherColumnsArgs& a)
{
    const std::int64_t picked = a.columns.dims[0];
    return Checker("gatherColumns")
        .leads("x", a.x, 2)
        .tensor("columns", a.columns, DType::I32, {picked})
        .tensor("out", a.out, a.x.dtype, {a.x.dims[0], picked})
        .status();
}

Status checkScatterColumns(const ScatterColumnsArgs& a)
{
    const std::int64_t picked = a.columns.dims[0];
    return Checker("scatterColumns")
        .leads("out", a.out, 2)
        .tensor("columns", a.columns, DType::I32, {picked})
        .tensor("x", a.x, a.out.dtype, {a.out.dims[0], picked})
        .status();
}

Status checkCopyColumns(const CopyColumnsArgs& a)
{
    const auto isWithin = [&a](const TensorView& rows, std::int64_t first) {
        return first >= 0 && a.columns >= 0 && first <= rows.dims[1] - a.columns;
    };
    return Checker("copyColumns")
        .leads("from", a.from, 2)
        .leads("to", a.to, 2)
        .tensor("to", a.to, a.to.dtype, {a.from.dims[0], a.to.dims[1]})
        .holds(isWithin(a.from, a.fromColumn) && isWithin(a.to, a.toColumn),
            "want its columns within the rows")
        .apart("to", a.to, "from", a.from)
        .status();
}

} // namespace mr
