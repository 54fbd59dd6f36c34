#include "core/device/op_checks.h"

#include "core/device/op_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {

using checks::Checker;
using checks::gradientType;
using checks::isCompute;
using checks::kCapWords;
using checks::kHeadWords;
using checks::packedColumns;

namespace {

constexpr const char* kMostKeysWords = "mostKeys must not be negative";
constexpr const char* kTurnWords = "want rotaryDim even, above 0 and at most headDim";

constexpr const char* kFirstHeadWords =
    "want heads of at least one element, all of them within a row, and firstHead 0 with kvHeads";

bool turns(int rotaryDim, int headDim) noexcept
{
    return rotaryDim > 0 && rotaryDim % 2 == 0 && rotaryDim <= headDim;
}

// The columns that heads [firstHead, firstHead + heads) end at.
std::int64_t endOfHeads(int firstHead, int heads, int headDim) noexcept
{
    return (std::int64_t{firstHead} + heads) * headDim;
}

// Names of a HeadNorm's tensors.
struct HeadNormNames {
    const char* projected;
    const char* rstd;
    const char* weight;
};

constexpr HeadNormNames kQueryNames = {"queries.projected", "queries.rstd", "queries.weight"};
constexpr HeadNormNames kKeyNames = {"keys.projected", "keys.rstd", "keys.weight"};

void checkHeadNorm(Checker& check, const HeadNormNames& names, const HeadNorm& norm, DType type,
    std::int64_t tokens, std::int64_t heads, std::int64_t headDim)
{
    check.tensor(names.projected, norm.projected, type, {tokens, heads * headDim})
        .tensor(names.rstd, norm.rstd, DType::F32, {tokens, heads})
        .tensor(names.weight, norm.weight, type, {headDim});
}

// Checks the arguments that forward and backward share.
template <typename Args>
void checkTurnedHeads(Checker& check, const char* name, const TensorView& packed, const Args& a)
{
    const std::int64_t tokens = packed.dims[0];
    const std::int64_t positions = a.cosTable.dims[0];
    const bool isOneSide = a.kvHeads == 0;
    check.leads(name, packed, 2);
    if (isOneSide)
        check.holds(a.heads > 0 && a.headDim > 0 && a.firstHead >= 0 &&
                        endOfHeads(a.firstHead, a.heads, a.headDim) <= packed.dims[1],
            kFirstHeadWords);
    else
        check.holds(packedColumns(a.heads, a.kvHeads, a.headDim) > 0, kHeadWords)
            .holds(a.firstHead == 0, kFirstHeadWords)
            .tensor(
                name, packed, packed.dtype, {tokens, packedColumns(a.heads, a.kvHeads, a.headDim)});
    check.holds(a.rotaryDim == 0 || turns(a.rotaryDim, a.headDim), kTurnWords);
    checkHeadNorm(check, kQueryNames, a.queries, packed.dtype, tokens, a.heads, a.headDim);
    if (!isOneSide)
        checkHeadNorm(check, kKeyNames, a.keys, packed.dtype, tokens, a.kvHeads, a.headDim);
    if (a.rotaryDim == 0)
        return;
    check.tensor("positions", a.positions, DType::I32, {tokens})
        .tensor("cosTable", a.cosTable, DType::F32, {positions, a.rotaryDim / 2})
        .tensor("sinTable", a.sinTable, DType::F32, {positions, a.rotaryDim / 2});
}

} // namespace

Status checkIds(
    const char* what, std::span<const std::int32_t> ids, std::int64_t rows, std::int32_t least)
{
    const auto isOutside = [&](std::int32_t id) { return id < least || id >= rows; };
    const auto wrong = std::find_if(ids.begin(), ids.end(), isOutside);
    if (wrong == ids.end())
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("{}: token {} has the id {}, the table has {} rows; the tokenizer does not "
                    "belong to the model",
            what, wrong - ids.begin(), *wrong, rows));
}

Status checkEmbed(const EmbedArgs& a)
{
    const std::int64_t tokens = a.ids.dims[0];
    return Checker("embed")
        .leads("table", a.table, 2)
        .tensor("ids", a.ids, DType::I32, {tokens})
        .tensor("out", a.out, a.table.dtype, {tokens, a.table.dims[1]})
        .status();
}

Status checkEmbedBackward(const EmbedBackwardArgs& a)
{
    const std::int64_t tokens = a.gradOut.dims[0];
    return Checker("embedBackward")
        .leads("gradOut", a.gradOut, 2)
        .tensor("ids", a.ids, DType::I32, {tokens})
        .tensor("order", a.order, DType::I32, {tokens})
        .tensor("gradTable", a.gradTable, gradientType(a.gradTable, a.gradOut.dtype, a.accumulate),
            {a.gradTable.dims[0], a.gradOut.dims[1]})
        .status();
}

Status checkRmsNorm(const RmsNormArgs& a)
{
    const std::int64_t rows = a.x.dims[0];
    const std::int64_t cols = a.x.dims[1];
    Checker check("rmsNorm");
    check.leads("x", a.x, 2)
        .optional("residual", a.residual, a.x.dtype, {rows, cols})
        .tensor("weight", a.weight, a.x.dtype, {cols})
        .tensor("out", a.out, a.x.dtype, {rows, cols})
        .tensor("rstd", a.rstd, DType::F32, {rows})
        .holds(a.out.data != a.x.data || a.x.count() == 0, "out must not be x");
    if (a.residual.data)
        check.tensor("sum", a.sum, a.x.dtype, {rows, cols});
    return check.status();
}

Status checkRmsNormBackward(const RmsNormBackwardArgs& a)
{
    const std::int64_t rows = a.x.dims[0];
    const std::int64_t cols = a.x.dims[1];
    const DType type = a.x.dtype;
    const std::int64_t blocks = (rows + kNormRowBlock - 1) / kNormRowBlock;
    return Checker("rmsNormBackward")
        .leads("x", a.x, 2)
        .tensor("gradOut", a.gradOut, type, {rows, cols})
        .tensor("weight", a.weight, type, {cols})
        .tensor("rstd", a.rstd, DType::F32, {rows})
        .optional("gradResidual", a.gradResidual, type, {rows, cols})
        .tensor("gradX", a.gradX, type, {rows, cols})
        .apart("gradX", a.gradX, "gradOut", a.gradOut)
        .apart("gradX", a.gradX, "x", a.x)
        .optional(
            "gradWeight", a.gradWeight, gradientType(a.gradWeight, type, a.accumulate), {cols})
        .tensor("partial", a.partial, DType::F32, {blocks, cols})
        .status();
}

Status checkLinear(const LinearArgs& a)
{
    const std::int64_t out = a.weight.dims[0];
    const DType outType = a.out.dtype == DType::F32 ? DType::F32 : a.x.dtype;
    return Checker("linear")
        .leads("x", a.x, 2)
        .tensor("weight", a.weight, a.x.dtype, {out, a.x.dims[1]})
        .optional("bias", a.bias, a.x.dtype, {out})
        .tensor("out", a.out, outType, {a.x.dims[0], out})
        .status();
}

Status checkLinearBackwardInput(const LinearBackwardInputArgs& a)
{
    const std::int64_t in = a.weight.dims[1];
    return Checker("linearBackwardInput")
        .leads("gradOut", a.gradOut, 2)
        .tensor("weight", a.weight, a.gradOut.dtype, {a.gradOut.dims[1], in})
        .tensor("gradX", a.gradX, a.gradOut.dtype, {a.gradOut.dims[0], in})
        .status();
}

Status checkLinearBackwardWeight(const LinearBackwardWeightArgs& a)
{
    const std::int64_t out = a.gradOut.dims[1];
    const std::int64_t in = a.x.dims[1];
    return Checker("linearBackwardWeight")
        .leads("gradOut", a.gradOut, 2)
        .tensor("x", a.x, a.gradOut.dtype, {a.gradOut.dims[0], in})
        .tensor("gradWeight", a.gradWeight,
            gradientType(a.gradWeight, a.gradOut.dtype, a.accumulate), {out, in})
        .optional("gradBias", a.gradBias, a.gradWeight.dtype, {out})
        .optional("product", a.product, DType::F32, {out, in})
        .status();
}

namespace {

bool isInside(const ColumnWindow& w) noexcept
{
    return w.first >= 0 && w.count >= 0 && w.first + w.count <= w.matrix.dims[1];
}

constexpr const char* kWindowWords = "want windows of one shape inside matrices";

} // namespace

Status checkWindowProduct(const WindowProductArgs& a)
{
    const std::int64_t depth = a.transposeA ? a.a.matrix.dims[0] : a.a.count;
    const std::int64_t rows = a.transposeA ? a.a.count : a.a.matrix.dims[0];
    const std::int64_t cols = a.transposeB ? a.b.matrix.dims[0] : a.b.count;
    const DType type = a.a.matrix.dtype;
    const DType outType = a.out.matrix.dtype == DType::F32 ? DType::F32 : type;
    return Checker("windowProduct")
        .leads("a", a.a.matrix, 2)
        .holds(a.b.matrix.rank == 2 && a.out.matrix.rank == 2, "want matrices")
        .tensor(
            "b", a.b.matrix, type, {a.transposeB ? a.b.matrix.dims[0] : depth, a.b.matrix.dims[1]})
        .tensor("out", a.out.matrix, outType, {rows, a.out.matrix.dims[1]})
        .holds(isInside(a.a) && isInside(a.b) && isInside(a.out), "want windows inside matrices")
        .holds(depth > 0, "want a sum of one number or more")
        .holds(!a.transposeB || a.b.count == depth, "want as many columns of b as a has depth")
        .holds(a.out.count == cols, "want as many columns of out as the product has")
        .status();
}

Status checkAdapterNorms(const AdapterNormsArgs& a)
{
    const std::int64_t rows = a.weight.dims[0];
    const std::int64_t in = a.weight.dims[1];
    const std::int64_t rank = a.a.dims[0];
    return Checker("adapterNorms")
        .leads("weight", a.weight, 2)
        .tensor("a", a.a, a.weight.dtype, {rank, in})
        .tensor("b", a.b, a.weight.dtype, {rows, rank})
        .tensor("magnitude", a.magnitude, a.weight.dtype, {rows})
        .tensor("norms", a.norms, DType::F32, {rows})
        .tensor("factors", a.factors, DType::F32, {rows})
        .status();
}

Status checkScaleColumns(const ScaleColumnsArgs& a)
{
    const DType type = a.x.matrix.dtype;
    return Checker("scaleColumns")
        .leads("x", a.x.matrix, 2)
        .tensor("factors", a.factors, DType::F32, {a.x.count})
        .optional("bias", a.bias, type, {a.x.count})
        .tensor("out", a.out.matrix, type, {a.x.matrix.dims[0], a.out.matrix.dims[1]})
        .holds(isInside(a.x) && isInside(a.out) && a.out.count == a.x.count, kWindowWords)
        .status();
}

Status checkColumnDots(const ColumnDotsArgs& a)
{
    const DType type = a.a.matrix.dtype;
    return Checker("columnDots")
        .leads("a", a.a.matrix, 2)
        .tensor("b", a.b.matrix, type, {a.a.matrix.dims[0], a.b.matrix.dims[1]})
        .tensor("divisors", a.divisors, DType::F32, {a.a.count})
        .tensor("out", a.out, gradientType(a.out, type, a.accumulate), {a.a.count})
        .holds(isInside(a.a) && isInside(a.b) && a.b.count == a.a.count, kWindowWords)
        .status();
}

Status checkBiasGradient(const BiasGradientArgs& a)
{
    return Checker("biasGradient")
        .leads("gradOut", a.gradOut, 2)
        .tensor("gradBias", a.gradBias, gradientType(a.gradBias, a.gradOut.dtype, a.accumulate),
            {a.gradOut.dims[1]})
        .status();
}

namespace {

constexpr const char* kBlockWords = "want sizes that are multiples of 16, and not 0";
constexpr const char* kStartWords = "want tensors that start at multiples of 16 bytes";

bool isCode(DType type) noexcept
{
    return type == DType::E4M3 || type == DType::E5M2;
}

bool isBlocks(std::int64_t size) noexcept
{
    return size > 0 && size % kCodeBlock == 0;
}

template <typename... Views>
bool startAtBlocks(const Views&... views) noexcept
{
    return ((reinterpret_cast<std::uintptr_t>(views.data) % 16 == 0) && ...);
}

} // namespace

Status checkQuantize(const QuantizeArgs& a)
{
    const std::int64_t rows = a.x.dims[0];
    const std::int64_t cols = a.x.dims[1];
    const DType type = a.codes.data ? a.codes.dtype : a.turned.dtype;
    return Checker("quantize")
        .tensor("x", a.x, DType::BF16, {rows, cols})
        .holds(isBlocks(rows) && isBlocks(cols), kBlockWords)
        .holds(isCode(type), "want codes or turned of E4M3 or E5M2")
        .optional("codes", a.codes, type, {rows, cols})
        .optional("turned", a.turned, type, {cols, rows})
        .tensor("scale", a.scale, DType::F32, {1})
        .tensor("partial", a.partial, DType::I32, {kQuantizePartials})
        .holds(startAtBlocks(a.x, a.codes, a.turned, a.partial), kStartWords)
        .status();
}

Status checkCodeProduct(const CodeProductArgs& a)
{
    const std::int64_t m = a.a.dims[0];
    const std::int64_t k = a.a.dims[1];
    const std::int64_t n = a.b.dims[0];
    const DType outType = a.out.dtype == DType::F32 ? DType::F32 : DType::BF16;
    return Checker("codeProduct")
        .holds(isCode(a.a.dtype), "a is no E4M3 and no E5M2")
        .tensor("a", a.a, a.a.dtype, {m, k})
        .tensor("b", a.b, DType::E4M3, {n, k})
        .holds(isBlocks(m) && isBlocks(n) && isBlocks(k), kBlockWords)
        .tensor("scaleA", a.scaleA, DType::F32, {1})
        .tensor("scaleB", a.scaleB, DType::F32, {1})
        .optional("bias", a.bias, DType::BF16, {n})
        .tensor("out", a.out, outType, {m, n})
        .holds(!a.accumulate || (outType == DType::F32 && !a.bias.data),
            "want F32 and no bias to accumulate")
        .holds(startAtBlocks(a.a, a.b, a.out), kStartWords)
        .status();
}

Status checkRope(const RopeArgs& a)
{
    const std::int64_t positions = a.cosTable.dims[0];
    return Checker("rope")
        .leads("x", a.x, 2)
        .tensor("positions", a.positions, DType::I32, {a.x.dims[0]})
        .holds(a.heads >= 0 && a.firstHead >= 0, "heads and firstHead must not be negative")
        .holds(turns(a.rotaryDim, a.headDim), kTurnWords)
        .holds(endOfHeads(a.firstHead, a.heads, a.headDim) <= a.x.dims[1],
            "x has fewer columns than its heads")
        .tensor("cosTable", a.cosTable, DType::F32, {positions, a.rotaryDim / 2})
        .tensor("sinTable", a.sinTable, DType::F32, {positions, a.rotaryDim / 2})
        .status();
}

Status checkHeadNormRope(const HeadNormRopeArgs& a)
{
    Checker check("headNormRope");
    checkTurnedHeads(check, "qkv", a.qkv, a);
    return check.status();
}

Status checkHeadNormRopeBackward(const HeadNormRopeBackwardArgs& a)
{
    Checker check("headNormRopeBackward");
    checkTurnedHeads(check, "gradQkv", a.gradQkv, a);
    const std::int64_t partials = headNormPartials(a.gradQkv.dims[0], a.heads, a.kvHeads);
    const DType type = a.gradQkv.dtype;
    return check
        .optional("gradQueryWeight", a.gradQueryWeight,
            gradientType(a.gradQueryWeight, type, a.accumulate), {a.headDim})
        .optional("gradKeyWeight", a.gradKeyWeight,
            gradientType(a.gradKeyWeight, type, a.accumulate), {a.headDim})
        .tensor("partial", a.partial, DType::F32, {partials, a.headDim})
        .status();
}

Status checkAttention(const AttentionArgs& a)
{
    const std::int64_t tokens = a.qkv.dims[0];
    const std::int64_t columns = packedColumns(a.heads, a.kvHeads, a.headDim);
    const std::int64_t queries = tokens - a.firstQuery;
    return Checker("attention")
        .leads("qkv", a.qkv, 2)
        .holds(columns > 0, kHeadWords)
        .tensor("qkv", a.qkv, a.qkv.dtype, {tokens, columns})
        .holds(a.firstQuery >= 0 && a.firstQuery <= tokens, "firstQuery is outside the rows")
        .holds(a.softcap >= 0.0F, kCapWords)
        .holds(a.mostKeys >= 0, kMostKeysWords)
        .tensor("visibleFrom", a.visibleFrom, DType::I32, {tokens})
        .tensor(
            "out", a.out, a.qkv.dtype, {queries, static_cast<std::int64_t>(a.heads) * a.headDim})
        .tensor("lse", a.lse, DType::F32, {queries, a.heads})
        .status();
}

Status checkAttentionBackward(const AttentionBackwardArgs& a)
{
    const std::int64_t tokens = a.qkv.dims[0];
    const std::int64_t columns = packedColumns(a.heads, a.kvHeads, a.headDim);
    const std::int64_t outColumns = static_cast<std::int64_t>(a.heads) * a.headDim;
    const DType type = a.qkv.dtype;
    return Checker("attentionBackward")
        .leads("qkv", a.qkv, 2)
        .holds(columns > 0, kHeadWords)
        .tensor("qkv", a.qkv, type, {tokens, columns})
        .tensor("visibleFrom", a.visibleFrom, DType::I32, {tokens})
        .tensor("out", a.out, type, {tokens, outColumns})
        .tensor("lse", a.lse, DType::F32, {tokens, a.heads})
        .tensor("gradOut", a.gradOut, type, {tokens, outColumns})
        .tensor("delta", a.delta, DType::F32, {tokens, a.heads})
        .tensor("gradQkv", a.gradQkv, type, {tokens, columns})
        .holds(a.gradQkv.data != a.qkv.data || tokens == 0, "gradQkv must not be qkv")
        .holds(a.mostKeys >= 0, kMostKeysWords)
        .holds(a.partial.data == nullptr || a.partial.dtype == DType::F32, "partial must be F32")
        .holds(a.softcap >= 0.0F, kCapWords)
        .status();
}

Status checkSwiglu(const SwigluArgs& a)
{
    const std::int64_t rows = a.out.dims[0];
    const std::int64_t cols = a.out.dims[1];
    return Checker("swiglu")
        .leads("out", a.out, 2)
        .tensor("gateUp", a.gateUp, a.out.dtype, {rows, 2 * cols})
        .status();
}

Status checkSwigluBackward(const SwigluBackwardArgs& a)
{
    const std::int64_t rows = a.gradOut.dims[0];
    const std::int64_t cols = a.gradOut.dims[1];
    return Checker("swigluBackward")
        .leads("gradOut", a.gradOut, 2)
        .tensor("gateUp", a.gateUp, a.gradOut.dtype, {rows, 2 * cols})
        .tensor("gradGateUp", a.gradGateUp, a.gradOut.dtype, {rows, 2 * cols})
        .status();
}

Status checkSum(const SumArgs& a)
{
    return Checker("sum")
        .leads("values", a.values, 1, true)
        .tensor("total", a.total, DType::F64, {a.total.dims[0]})
        .holds(a.index >= 0 && a.index < a.total.dims[0], "index is outside total")
        .status();
}

} // namespace mr
