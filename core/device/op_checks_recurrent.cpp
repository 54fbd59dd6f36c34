// Checks of the ops of recurrent_ops.h. See op_checks.h.

#include "core/device/op_checker.h"
#include "core/device/op_checks.h"

#include <algorithm>

namespace mr {

using checks::Checker;
using checks::gradientType;
using checks::kHeadWords;
using checks::packedColumns;

static_assert(kRecurrentRows == kNormRowBlock);

namespace {

constexpr const char* kColumnWords = "want its columns within the rows";
constexpr const char* kTapWords = "want 2 to 8 taps";
constexpr const char* kContinueWords = "cannot continue without what the call before left";
constexpr const char* kDeltaWords =
    "want heads and sizes above 0, and valueHeads a multiple of keyHeads";

bool isWithin(std::int64_t first, std::int64_t count, const TensorView& matrix) noexcept
{
    return first >= 0 && count >= 0 && first <= matrix.dims[1] - count;
}

// x, weight and documents of a convolution over x (T, cols).
template <typename Args>
Checker& checkConv(Checker& check, const Args& a)
{
    const std::int64_t taps = a.weight.dims[1];
    return check.leads("x", a.x, 2)
        .holds(taps >= kLeastTaps && taps <= kMostTaps, kTapWords)
        .tensor("weight", a.weight, a.x.dtype, {a.weight.dims[0], taps})
        .tensor("documentFrom", a.documentFrom, DType::I32, {a.x.dims[0]})
        .holds(isWithin(a.firstColumn, a.weight.dims[0], a.x), kColumnWords);
}

// The tensors that the delta rule reads, forward and backward.
template <typename Args>
Checker& checkDelta(Checker& check, const Args& a)
{
    const DeltaShape& s = a.shape;
    const bool isShape = std::min({s.keyHeads, s.valueHeads, s.keyDim, s.valueDim}) > 0 &&
                         s.valueHeads % s.keyHeads == 0;
    const std::int64_t rows = a.mixed.dims[0];
    const DType type = a.mixed.dtype;
    return check.leads("mixed", a.mixed, 2)
        .holds(isShape, kDeltaWords)
        .tensor("mixed", a.mixed, type, {rows, s.columns()})
        .tensor("gates", a.gates, type, {rows, a.gates.dims[1]})
        .holds(isWithin(a.firstGate, 2 * std::int64_t{s.valueHeads}, a.gates), kColumnWords)
        .tensor("logDecay", a.logDecay, type, {s.valueHeads})
        .tensor("timeBias", a.timeBias, type, {s.valueHeads})
        .tensor("documentFrom", a.documentFrom, DType::I32, {rows});
}

// x (T, n dim), gate, weight (dim) and rstd (T, n).
template <typename Args>
Checker& checkGatedNormInputs(Checker& check, const Args& a)
{
    const std::int64_t rows = a.x.dims[0];
    const std::int64_t cols = a.x.dims[1];
    const std::int64_t dim = a.weight.dims[0];
    const DType type = a.x.dtype;
    return check.leads("x", a.x, 2)
        .holds(dim > 0 && cols % dim == 0, "want rows of whole heads")
        .tensor("weight", a.weight, type, {dim})
        .tensor("gate", a.gate, type, {rows, a.gate.dims[1]})
        .holds(isWithin(a.firstColumn, cols, a.gate), kColumnWords)
        .tensor("rstd", a.rstd, DType::F32, {rows, cols / std::max<std::int64_t>(1, dim)});
}

std::int64_t joinedColumns(int heads, int kvHeads, int headDim) noexcept
{
    const std::int64_t packed = packedColumns(heads, kvHeads, headDim);
    return packed < 0 ? packed : packed + std::int64_t{heads} * headDim;
}

} // namespace

Status checkCausalConv(const CausalConvArgs& a)
{
    Checker check("causalConv");
    const std::int64_t channels = a.weight.dims[0];
    return checkConv(check, a)
        .tensor("out", a.out, a.x.dtype, {a.x.dims[0], channels})
        .apart("out", a.out, "x", a.x)
        .holds(a.history.data || !a.continues, kContinueWords)
        .optional("history", a.history, a.x.dtype, {a.weight.dims[1] - 1, channels})
        .status();
}

Status checkCausalConvBackward(const CausalConvBackwardArgs& a)
{
    Checker check("causalConvBackward");
    const std::int64_t rows = a.x.dims[0];
    const std::int64_t channels = a.weight.dims[0];
    const std::int64_t taps = a.weight.dims[1];
    return checkConv(check, a)
        .tensor("gradOut", a.gradOut, a.x.dtype, {rows, channels})
        .tensor("gradX", a.gradX, a.x.dtype, {rows, a.x.dims[1]})
        .apart("gradX", a.gradX, "x", a.x)
        .apart("gradX", a.gradX, "gradOut", a.gradOut)
        .optional("gradWeight", a.gradWeight, gradientType(a.gradWeight, a.x.dtype, a.accumulate),
            {channels, taps})
        .tensor("partial", a.partial, DType::F32, {recurrentBlocks(rows), channels * taps})
        .status();
}

Status checkGatedDelta(const GatedDeltaArgs& a)
{
    Checker check("gatedDelta");
    return checkDelta(check, a)
        .tensor("out", a.out, a.mixed.dtype, {a.mixed.dims[0], a.shape.valueColumns()})
        .apart("out", a.out, "mixed", a.mixed)
        .holds(a.state.data || !a.continues, kContinueWords)
        .optional(
            "state", a.state, DType::F32, {a.shape.valueHeads, a.shape.keyDim, a.shape.valueDim})
        .optional("scratch", a.scratch, DType::F32, {deltaForwardScratch(a.mixed.dims[0], a.shape)})
        .status();
}

Status checkGatedDeltaBackward(const GatedDeltaBackwardArgs& a)
{
    Checker check("gatedDeltaBackward");
    const std::int64_t rows = a.mixed.dims[0];
    const DeltaShape& s = a.shape;
    const DType type = a.mixed.dtype;
    return checkDelta(check, a)
        .tensor("gradOut", a.gradOut, type, {rows, s.valueColumns()})
        .tensor("gradMixed", a.gradMixed, type, {rows, s.columns()})
        .apart("gradMixed", a.gradMixed, "mixed", a.mixed)
        .tensor("gradGates", a.gradGates, type, {rows, a.gates.dims[1]})
        .apart("gradGates", a.gradGates, "gates", a.gates)
        .optional("gradLogDecay", a.gradLogDecay, gradientType(a.gradLogDecay, type, a.accumulate),
            {s.valueHeads})
        .optional("gradTimeBias", a.gradTimeBias, gradientType(a.gradTimeBias, type, a.accumulate),
            {s.valueHeads})
        .tensor("borders", a.borders, DType::F32,
            {recurrentBlocks(rows), s.valueHeads, s.keyDim, s.valueDim})
        .tensor("partial", a.partial, DType::F32, {kDeltaPlanes, rows, s.valueHeads})
        .optional("scratch", a.scratch, DType::F32, {deltaScratch(rows, s)})
        .status();
}

Status checkGatedNorm(const GatedNormArgs& a)
{
    Checker check("gatedNorm");
    return checkGatedNormInputs(check, a)
        .tensor("out", a.out, a.x.dtype, {a.x.dims[0], a.x.dims[1]})
        .apart("out", a.out, "x", a.x)
        .status();
}

Status checkGatedNormBackward(const GatedNormBackwardArgs& a)
{
    Checker check("gatedNormBackward");
    const std::int64_t rows = a.x.dims[0];
    const std::int64_t cols = a.x.dims[1];
    const std::int64_t dim = a.weight.dims[0];
    const DType type = a.x.dtype;
    return checkGatedNormInputs(check, a)
        .tensor("gradOut", a.gradOut, type, {rows, cols})
        .tensor("gradX", a.gradX, type, {rows, cols})
        .apart("gradX", a.gradX, "gradOut", a.gradOut)
        .apart("gradX", a.gradX, "x", a.x)
        .tensor("gradGate", a.gradGate, type, {rows, a.gate.dims[1]})
        .optional("gradWeight", a.gradWeight, gradientType(a.gradWeight, type, a.accumulate), {dim})
        .tensor("partial", a.partial, DType::F32,
            {recurrentBlocks(rows * cols / std::max<std::int64_t>(1, dim)), dim})
        .status();
}

Status checkSplitQueries(const SplitQueriesArgs& a)
{
    const std::int64_t rows = a.joined.dims[0];
    return Checker("splitQueries")
        .leads("joined", a.joined, 2)
        .holds(packedColumns(a.heads, a.kvHeads, a.headDim) > 0, kHeadWords)
        .tensor("joined", a.joined, a.joined.dtype,
            {rows, joinedColumns(a.heads, a.kvHeads, a.headDim)})
        .tensor("qkv", a.qkv, a.joined.dtype, {rows, packedColumns(a.heads, a.kvHeads, a.headDim)})
        .apart("qkv", a.qkv, "joined", a.joined)
        .status();
}

Status checkGateHeads(const GateHeadsArgs& a)
{
    const std::int64_t rows = a.x.dims[0];
    const std::int64_t cols = std::int64_t{a.heads} * a.headDim;
    return Checker("gateHeads")
        .leads("x", a.x, 2)
        .holds(packedColumns(a.heads, a.kvHeads, a.headDim) > 0, kHeadWords)
        .tensor("x", a.x, a.x.dtype, {rows, cols})
        .tensor("joined", a.joined, a.x.dtype, {rows, joinedColumns(a.heads, a.kvHeads, a.headDim)})
        .tensor("out", a.out, a.x.dtype, {rows, cols})
        .status();
}

Status checkGateHeadsBackward(const GateHeadsBackwardArgs& a)
{
    const std::int64_t rows = a.x.dims[0];
    const std::int64_t cols = std::int64_t{a.heads} * a.headDim;
    const std::int64_t all = joinedColumns(a.heads, a.kvHeads, a.headDim);
    return Checker("gateHeadsBackward")
        .leads("x", a.x, 2)
        .holds(packedColumns(a.heads, a.kvHeads, a.headDim) > 0, kHeadWords)
        .tensor("x", a.x, a.x.dtype, {rows, cols})
        .tensor("gradOut", a.gradOut, a.x.dtype, {rows, cols})
        .tensor("joined", a.joined, a.x.dtype, {rows, all})
        .tensor("gradX", a.gradX, a.x.dtype, {rows, cols})
        .apart("gradX", a.gradX, "x", a.x)
        .tensor("gradJoined", a.gradJoined, a.x.dtype, {rows, all})
        .status();
}

} // namespace mr
