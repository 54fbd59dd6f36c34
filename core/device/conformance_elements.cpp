// Elementwise ops, norms and sums. No tolerance: each result is fixed to the bit by a written
// order of operations (ops.h, core/optim/adamw.h), which the references here follow.

#include "core/device/conformance_case.h"
#include "core/optim/adamw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace mr::conformance {

namespace {

// Nothing, one, around a block of 1024, around an item of several.
constexpr std::int64_t kCounts[] = {0, 1, 17, 1023, 1024, 1025, 40000};

float asFloat(double x)
{
    return static_cast<float>(x);
}

// Three floats whose order of addition matters, and the extremes.
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

Values bytesOf(const StepScalars& scalars)
{
    std::array<std::uint8_t, sizeof scalars> bytes;
    std::memcpy(bytes.data(), &scalars, sizeof scalars);
    return {bytes.begin(), bytes.end()};
}

void normJoin(CaseRun& run, std::int64_t n, double clip, double special)
{
    Input sums = run.random(DType::F32, {n});
    for (double& v : sums.values)
        v = std::abs(v);
    if (special != 0.0 && n > 0)
        sums.values.back() = special;
    sums = run.given(DType::F32, {n}, sums.values);
    const NormJoinArgs args{sums.view, run.blank(DType::U8, {sizeof(StepScalars)}), clip};
    run.call(run.ops().normJoin(args, run.stream()));
    double total = 0.0;
    for (const double v : sums.values)
        total += v;
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

struct AdamwState {
    Values high, low, m, v;
};

// The written order of core/optim/adamw.h, element by element.
AdamwState adamwInOrder(
    const AdamwState& in, const Values& grad, const AdamwFactors& f, float clip, bool decayed)
{
    AdamwState out;
    for (std::size_t i = 0; i < grad.size(); ++i) {
        float p = joinHalves(
            static_cast<std::uint16_t>(in.high[i]), static_cast<std::int16_t>(in.low[i]));
        const float g = asFloat(grad[i]) * clip;
        p = decayed ? p * f.decay : p;
        const float m = std::fma(f.oneMinusBeta1, g, f.beta1 * asFloat(in.m[i]));
        const float v = std::fma(f.oneMinusBeta2 * g, g, f.beta2 * asFloat(in.v[i]));
        const float d = std::fma(std::sqrt(v), f.inverseSqrtBias2, f.eps);
        p = std::fma(-f.stepSize, m / d, p);
        out.high.push_back(highHalf(p));
        out.low.push_back(lowHalf(p));
        out.m.push_back(static_cast<double>(m));
        out.v.push_back(static_cast<double>(v));
    }
    return out;
}

enum class Step { Decayed, Plain, NotFinite };

void adamw(CaseRun& run, DType type, std::int64_t n, Step step)
{
    AdamwState state;
    for (const double master : run.random(DType::F32, {n}).values) {
        state.high.push_back(highHalf(asFloat(master)));
        state.low.push_back(lowHalf(asFloat(master)));
    }
    state.m = run.random(DType::F32, {n}, 1e-3).values;
    for (const double m : state.m)
        state.v.push_back(static_cast<double>(asFloat(m * m)));
    const Input high = run.given(DType::U16, {n}, state.high);
    const Input low = run.given(DType::I16, {n}, state.low);
    const Input m = run.given(DType::F32, {n}, state.m);
    const Input v = run.given(DType::F32, {n}, state.v);
    const Input grad = run.random(type, {n}, 1e-3);
    StepScalars scalars;
    scalars.clipFactor = 0.7F;
    scalars.finite = step == Step::NotFinite ? 0 : 1;
    const Input at = run.given(DType::U8, {sizeof scalars}, bytesOf(scalars));
    AdamwFactors factors;
    factors.decay = 0.9999F;
    factors.stepSize = 1.3e-3F;
    factors.inverseSqrtBias2 = 17.5F;
    const bool decayed = step == Step::Decayed;
    run.call(run.ops().adamw(
        {high.view, low.view, m.view, v.view, grad.view, at.view, factors, decayed}, run.stream()));
    const AdamwState want =
        step == Step::NotFinite ? state : adamwInOrder(state, grad.values, factors, 0.7F, decayed);
    run.expectExactly("high", high.view, want.high);
    run.expectExactly("low", low.view, want.low);
    run.expectExactly("m", m.view, want.m);
    run.expectExactly("v", v.view, want.v);
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

void fill(CaseRun& run, std::int64_t n)
{
    const FillArgs args{run.blank(DType::F32, {n}), 1.5F};
    run.call(run.ops().fill(args, run.stream()));
    run.expectExactly("out", args.out, Values(static_cast<std::size_t>(n), 1.5));
}

template <typename F>
void push(Table& table, const char* op, const char* more, std::int64_t n, F run)
{
    table.push_back(
        {op, std::string(op) + " " + more + " (" + std::to_string(n) + ")", std::move(run)});
}

void addCountCases(Table& table, std::int64_t n)
{
    push(table, "sum", "f32", n, [=](CaseRun& run) { sum(run, n); });
    push(table, "fill", "f32", n, [=](CaseRun& run) { fill(run, n); });
    push(table, "join", "", n, [=](CaseRun& run) { joinAndSplit(run, n, true); });
    push(table, "split", "", n, [=](CaseRun& run) { joinAndSplit(run, n, false); });
    push(table, "cast", "to bf16", n, [=](CaseRun& run) { cast(run, DType::F32, n); });
    push(table, "cast", "to f32", n, [=](CaseRun& run) { cast(run, DType::BF16, n); });
    push(table, "normJoin", "no clip", n, [=](CaseRun& run) { normJoin(run, n, 0.0, 0.0); });
    push(table, "normJoin", "clip 1", n, [=](CaseRun& run) { normJoin(run, n, 1.0, 0.0); });
    push(table, "finishGradient", "f32 in place", n,
        [=](CaseRun& run) { finishGradient(run, DType::F32, n, true, true); });
    for (const DType type : kBothTypes) {
        push(table, "add", typeName(type), n, [=](CaseRun& run) { add(run, type, n, false); });
        push(table, "add", type == DType::F32 ? "f32 in place" : "bf16 in place", n,
            [=](CaseRun& run) { add(run, type, n, true); });
        push(table, "normBlocks", typeName(type), n,
            [=](CaseRun& run) { normBlocks(run, type, n); });
        for (const bool tied : {false, true})
            push(table, "finishGradient", tied ? "two sums" : "one sum", n,
                [=](CaseRun& run) { finishGradient(run, type, n, tied, false); });
        constexpr std::pair<Step, const char*> kSteps[] = {{Step::Decayed, " decayed"},
            {Step::Plain, " not decayed"}, {Step::NotFinite, " not finite"}};
        for (const auto& [step, words] : kSteps)
            push(table, "adamw", (std::string(typeName(type)) + words).c_str(), n,
                [=, step = step](CaseRun& run) { adamw(run, type, n, step); });
    }
}

} // namespace

void addElementCases(Table& table)
{
    for (const std::int64_t n : kCounts)
        addCountCases(table, n);
    push(table, "normJoin", "infinity", 5,
        [](CaseRun& run) { normJoin(run, 5, 1.0, std::numeric_limits<double>::infinity()); });
    push(table, "normJoin", "NaN", 5,
        [](CaseRun& run) { normJoin(run, 5, 1.0, std::numeric_limits<double>::quiet_NaN()); });
}

} // namespace mr::conformance
