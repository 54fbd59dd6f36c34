// Elementwise ops, norms and sums. No tolerance: each result is fixed to the bit by a written
// order of operations (ops.h, core/device/adamw.h), which the references here follow.

#include "core/device/adamw.h"
#include "core/prove/conformance_counts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace mr::conformance {

namespace {

// Three floats with a sum that depends on their order, and the extremes.
Values withSpecials(Values values)
{
    const std::array<double, 6> specials{0.0, -0.0, 3.0e38, -1.0e-40, 1.00390625, 1.01171875};
    for (std::size_t i = 0; i < specials.size() && i < values.size(); ++i)
        values[i] = static_cast<double>(static_cast<float>(specials[i]));
    return values;
}

void sum(CaseRun& run, std::int64_t n)
{
    const Input values = run.random(DType::F32, {n});
    const Input total = run.given(DType::F64, {3}, {1.0, 2.0, 3.0});
    run.call(run.ops().sum({values.view, total.view, 1}, run.stream()));
    double want = 0.0;
    for (const double v : values.values)
        want += v;
    run.expectExactly("total", total.view, {1.0, want, 3.0});
}

void add(CaseRun& run, DType type, std::int64_t n, bool inPlace)
{
    const Input a = run.random(type, {n});
    const Input b = run.random(type, {n});
    const AddArgs args{a.view, b.view, inPlace ? a.view : run.blank(type, {n})};
    run.call(run.ops().add(args, run.stream()));
    Values want;
    for (std::int64_t i = 0; i < n; ++i)
        want.push_back(static_cast<double>(roundTo(type, asFloat(a(i)) + asFloat(b(i)))));
    run.expectExactly("out", args.out, want);
}

void scale(CaseRun& run, DType type, std::int64_t n, bool inPlace)
{
    constexpr float kFactor = 0.22F;
    const Input x = run.random(type, {n});
    const ScaleArgs args{x.view, inPlace ? x.view : run.blank(type, {n}), kFactor};
    run.call(run.ops().scale(args, run.stream()));
    Values want;
    for (std::int64_t i = 0; i < n; ++i)
        want.push_back(static_cast<double>(roundTo(type, kFactor * asFloat(x(i)))));
    run.expectExactly("out", args.out, want);
}

void finishGradient(CaseRun& run, DType type, std::int64_t n, bool tied, bool inPlace)
{
    const Input first = run.random(DType::F32, {n});
    const Input second = tied ? run.random(DType::F32, {n}) : Input{};
    const FinishGradientArgs args{
        first.view, second.view, inPlace ? first.view : run.blank(type, {n})};
    run.call(run.ops().finishGradient(args, run.stream()));
    Values want;
    for (std::int64_t i = 0; i < n; ++i)
        want.push_back(static_cast<double>(
            roundTo(type, tied ? asFloat(first(i)) + asFloat(second(i)) : asFloat(first(i)))));
    run.expectExactly("out", args.out, want);
}

// A sum that was rounded when it was stored.
void finishRounded(CaseRun& run, std::int64_t n)
{
    const Input sum = run.random(DType::BF16, {n});
    const FinishGradientArgs args{sum.view, {}, run.blank(DType::BF16, {n})};
    run.call(run.ops().finishGradient(args, run.stream()));
    run.expectExactly("out", args.out, sum.values);
}

float blockSum(const Input& x, std::int64_t first, std::int64_t end)
{
    std::array<float, 16> lanes{};
    for (std::int64_t i = first; i < end; ++i) {
        float& lane = lanes[static_cast<std::size_t>((i - first) % 16)];
        lane = std::fma(asFloat(x(i)), asFloat(x(i)), lane);
    }
    for (std::size_t half = 8; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

void normBlocks(CaseRun& run, DType type, std::int64_t n)
{
    const Input x = run.random(type, {n});
    const NormBlocksArgs args{x.view, run.blank(DType::F32, {(n + 1023) / 1024})};
    run.call(run.ops().normBlocks(args, run.stream()));
    Values want;
    for (std::int64_t first = 0; first < n; first += 1024)
        want.push_back(static_cast<double>(blockSum(x, first, std::min(n, first + 1024))));
    run.expectExactly("blockSums", args.blockSums, want);
}

// The order of NormJoinArgs.
double joinedSums(const Values& sums)
{
    double total = 0.0;
    for (std::size_t first = 0; first < sums.size(); first += 1024) {
        std::array<double, 32> lanes{};
        for (std::size_t i = first; i < std::min(sums.size(), first + 1024); ++i)
            lanes[i % 32] += sums[i];
        for (std::size_t half = 16; half > 0; half /= 2)
            for (std::size_t l = 0; l < half; ++l)
                lanes[l] += lanes[l + half];
        total += lanes[0];
    }
    return total;
}

void normJoin(CaseRun& run, std::int64_t n, double clip, double special)
{
    Input sums = run.random(DType::F32, {n});
    // Exponents of a wide range: another order of additions gives other bits.
    for (std::size_t i = 0; i < sums.values.size(); ++i)
        sums.values[i] = std::ldexp(std::abs(sums.values[i]), static_cast<int>(i * 7 % 48) - 24);
    if (special != 0.0 && n > 0)
        sums.values.back() = special;
    sums = run.given(DType::F32, {n}, sums.values);
    const NormJoinArgs args{sums.view, run.blank(DType::F64, {(n + 1023) / 1024}),
        run.blank(DType::U8, {sizeof(StepScalars)}), clip};
    run.call(run.ops().normJoin(args, run.stream()));
    const double total = joinedSums(sums.values);
    StepScalars want;
    want.gradNorm = std::sqrt(total);
    want.finite = std::isfinite(total) ? 1 : 0;
    if (clip > 0.0 && want.finite != 0)
        want.clipFactor = static_cast<float>(std::min(1.0, clip / (want.gradNorm + 1e-6)));
    if (want.finite != 0)
        run.expectExactly("scalars", args.scalars, bytesOf(want));
    else // the bits of a NaN are not promised, those of `finite` are
        run.expectExactly("scalars.finite", args.scalars.rows(12, 4), {0.0, 0.0, 0.0, 0.0});
}

void joinAndSplit(CaseRun& run, std::int64_t n, bool joining)
{
    const Values values = withSpecials(run.random(DType::F32, {n}).values);
    Values high, low;
    for (const double value : values) {
        high.push_back(highHalf(asFloat(value)));
        low.push_back(lowHalf(asFloat(value)));
    }
    if (joining) {
        const Input h = run.given(DType::U16, {n}, high);
        const Input l = run.given(DType::I16, {n}, low);
        const JoinArgs args{h.view, l.view, run.blank(DType::F32, {n})};
        run.call(run.ops().join(args, run.stream()));
        run.expectExactly("out", args.out, values);
        return;
    }
    const Input value = run.given(DType::F32, {n}, values);
    const SplitArgs args{value.view, run.blank(DType::U16, {n}), run.blank(DType::I16, {n})};
    run.call(run.ops().split(args, run.stream()));
    run.expectExactly("high", args.high, high);
    run.expectExactly("low", args.low, low);
}

void cast(CaseRun& run, DType fromType, std::int64_t n)
{
    const DType toType = fromType == DType::F32 ? DType::BF16 : DType::F32;
    Values values = run.random(fromType, {n}).values;
    if (fromType == DType::F32) {
        values = withSpecials(values); // the last two are ties: one rounds down, one up
        if (n > 10)
            values[10] = std::numeric_limits<double>::quiet_NaN();
    }
    const Input from = run.given(fromType, {n}, values);
    const CastArgs args{from.view, run.blank(toType, {n})};
    run.call(run.ops().cast(args, run.stream()));
    Values want;
    for (const double value : values)
        want.push_back(static_cast<double>(roundTo(toType, asFloat(value))));
    if (fromType == DType::F32 && n > 10)
        want[10] = values[10];
    run.expectExactly("to", args.to, want);
}

void fill(CaseRun& run, DType type, std::int64_t n)
{
    const FillArgs args{run.blank(type, {n}), 1.5F};
    run.call(run.ops().fill(args, run.stream()));
    run.expectExactly("out", args.out, Values(static_cast<std::size_t>(n), 1.5));
}

// Codes, absmax and tables of any bits; the offset is of the size of what is added to it.
void dequantizeNf4(CaseRun& run, DType type, std::int64_t n)
{
    const std::int64_t blocks = (n + kNf4Block - 1) / kNf4Block;
    const auto bytes = [&](std::int64_t count) {
        Values values = run.random(DType::F32, {count}, 100.0).values;
        for (double& value : values)
            value = std::fmod(std::abs(std::trunc(value)), 256.0);
        return run.given(DType::U8, {count}, values);
    };
    const Input codes = bytes((n + 1) / 2);
    const Input absmax = bytes(blocks);
    const Input tables =
        run.random(DType::F32, {kNf4Fixed + (blocks + kNf4Nested - 1) / kNf4Nested});
    const DequantizeNf4Args args{codes.view, absmax.view, tables.view, run.blank(type, {n})};
    run.call(run.ops().dequantizeNf4(args, run.stream()));
    Values want;
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t block = i / kNf4Block;
        const auto pair = static_cast<int>(codes(i / 2));
        const float scale = asFloat(tables(kNf4Book + static_cast<std::int64_t>(absmax(block)))) *
                            asFloat(tables(kNf4Fixed + block / kNf4Nested));
        const float size = scale + asFloat(tables(kNf4Book + kNf4Map));
        want.push_back(static_cast<double>(
            roundToBf16(asFloat(tables(i % 2 == 0 ? pair / 16 : pair % 16)) * size)));
    }
    run.expectExactly("out", args.out, want);
}

void addElementsCountCases(Table& table, std::int64_t n)
{
    push(table, "sum", "f32", n, [=](CaseRun& run) { sum(run, n); });
    push(table, "join", "", n, [=](CaseRun& run) { joinAndSplit(run, n, true); });
    push(table, "split", "", n, [=](CaseRun& run) { joinAndSplit(run, n, false); });
    push(table, "cast", "to bf16", n, [=](CaseRun& run) { cast(run, DType::F32, n); });
    push(table, "cast", "to f32", n, [=](CaseRun& run) { cast(run, DType::BF16, n); });
    push(table, "normJoin", "no clip", n, [=](CaseRun& run) { normJoin(run, n, 0.0, 0.0); });
    push(table, "normJoin", "clip 1", n, [=](CaseRun& run) { normJoin(run, n, 1.0, 0.0); });
    push(table, "finishGradient", "f32 in place", n,
        [=](CaseRun& run) { finishGradient(run, DType::F32, n, true, true); });
    push(
        table, "finishGradient", "rounded before", n, [=](CaseRun& run) { finishRounded(run, n); });
    for (const DType type : kBothTypes) {
        push(table, "fill", typeName(type), n, [=](CaseRun& run) { fill(run, type, n); });
        push(table, "add", typeName(type), n, [=](CaseRun& run) { add(run, type, n, false); });
        push(table, "dequantizeNf4", typeName(type), n,
            [=](CaseRun& run) { dequantizeNf4(run, type, n); });
        push(table, "add", type == DType::F32 ? "f32 in place" : "bf16 in place", n,
            [=](CaseRun& run) { add(run, type, n, true); });
        for (const bool inPlace : {false, true})
            push(table, "scale", typeName(type) + std::string(inPlace ? " in place" : ""), n,
                [=](CaseRun& run) { scale(run, type, n, inPlace); });
        push(table, "normBlocks", typeName(type), n,
            [=](CaseRun& run) { normBlocks(run, type, n); });
        for (const bool tied : {false, true})
            push(table, "finishGradient",
                typeName(type) + std::string(tied ? " two sums" : " one sum"), n,
                [=](CaseRun& run) { finishGradient(run, type, n, tied, false); });
    }
}

} // namespace

void addElementCases(Table& table)
{
    for (const std::int64_t n : kCounts)
        addElementsCountCases(table, n);
    Table lines;
    for (const std::int64_t n : kLateCounts)
        addElementsCountCases(lines, n);
    addLateStarts(table, lines);
    // Chunks in several blocks of the grid, and more of them than the joining block has threads.
    for (const std::int64_t n : {std::int64_t{5'000}, std::int64_t{300'000}})
        push(table, "normJoin", "clip 1", n, [=](CaseRun& run) { normJoin(run, n, 1.0, 0.0); });
    push(table, "normJoin", "infinity", 5,
        [](CaseRun& run) { normJoin(run, 5, 1.0, std::numeric_limits<double>::infinity()); });
    push(table, "normJoin", "NaN", 5,
        [](CaseRun& run) { normJoin(run, 5, 1.0, std::numeric_limits<double>::quiet_NaN()); });
}

} // namespace mr::conformance
