// adamw, accumulate and dropout. No tolerance: each result is fixed to the bit by a written order
// of operations (ops.h, core/device/adamw.h), which the references here follow.

#include "core/base/philox.h"
#include "core/device/adamw.h"
#include "core/prove/conformance_counts.h"

#include <limits>

namespace mr::conformance {

namespace {

struct AdamwState {
    Values high, low, m, v;
};

// The written order of core/device/adamw.h, element by element.
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

struct Fading {
    const char* words;
    float keep = 1.0F;
    bool hasScalars = true;
    bool finite = true;
};

constexpr Fading kFadings[] = {
    {"starts", 0.0F, true, true},
    {"starts without scalars", 0.0F, false, true},
    {"starts, not finite", 0.0F, true, false},
    {"adds", 1.0F, true, true},
    {"adds without scalars", 1.0F, false, true},
    {"adds, not finite", 1.0F, true, false},
    {"fades", 0.9F, true, true},
    {"fades, not finite", 0.9F, true, false},
};

void accumulate(CaseRun& run, DType type, std::int64_t n, const Fading& how)
{
    // A sum that starts finds NaN, and a gradient that is not finite has an infinity: neither may
    // show in the sum.
    const bool starts = how.keep == 0.0F;
    const Input sum = starts ? Input{run.blank(DType::F32, {n}), {}} : run.random(DType::F32, {n});
    Values values = run.random(type, {n}).values;
    if (!how.finite && n > 0)
        values.back() = std::numeric_limits<double>::infinity();
    const Input x = run.given(type, {n}, values);
    StepScalars scalars;
    scalars.finite = how.finite ? 1 : 0;
    const Input at = run.given(DType::U8, {sizeof scalars}, bytesOf(scalars));
    const AccumulateArgs args{sum.view, x.view, how.hasScalars ? at.view : TensorView{}, how.keep};
    run.call(run.ops().accumulate(args, run.stream()));
    Values want;
    for (std::int64_t i = 0; i < n; ++i) {
        if (!how.finite)
            want.push_back(starts ? 0.0 : sum(i));
        else
            want.push_back(
                starts ? x(i)
                       : static_cast<double>(std::fma(how.keep, asFloat(sum(i)), asFloat(x(i)))));
    }
    run.expectExactly("sum", args.sum, want);
}

// The share of dropout, and how the op is asked for it.
struct Dropping {
    const char* words;
    double probability = 0.0;
    bool adds = false;
    bool inPlace = false;
};

constexpr Dropping kDroppings[] = {
    {"of 0.3", 0.3, false, false},
    {"of 0.3 adds", 0.3, true, false},
    {"of 0.75 in place", 0.75, false, true},
    {"of nothing", 0.0, false, false},
};

void dropout(CaseRun& run, DType type, std::int64_t n, const Dropping& how)
{
    // A dropped infinity leaves nothing behind.
    constexpr DropoutDraw kDraw{0x1234'5678'9ABC'DEF0, 0xFEDC'BA98'7654'3210, 0.0};
    DropoutDraw draw = kDraw;
    draw.probability = how.probability;
    const auto keeps = [&](std::int64_t i) {
        const auto block = static_cast<std::uint64_t>(i / 4);
        return philox(draw.key, block, draw.counter)[static_cast<std::size_t>(i % 4)] >=
               static_cast<std::uint32_t>(how.probability * 4294967296.0);
    };
    Values values = run.random(type, {n}).values;
    for (std::int64_t i = 0; i < n; ++i)
        if (!keeps(i))
            values[static_cast<std::size_t>(i)] = std::numeric_limits<double>::infinity();
    const Input x = run.given(type, {n}, values);
    const Input sum = run.random(type, {n});
    const TensorView fresh = how.inPlace ? x.view : run.blank(type, {n});
    const DropoutArgs args{x.view, how.adds ? sum.view : fresh, draw, how.adds};
    run.call(run.ops().dropout(args, run.stream()));
    const auto scale = static_cast<float>(1.0 / (1.0 - how.probability));
    Values want;
    for (std::int64_t i = 0; i < n; ++i) {
        const float before = how.adds ? asFloat(sum(i)) : 0.0F;
        const float value = keeps(i) ? std::fma(asFloat(x(i)), scale, before) : before;
        want.push_back(static_cast<double>(roundTo(type, value)));
    }
    run.expectExactly("out", args.out, want);
}

void addUpdatesCountCases(Table& table, std::int64_t n)
{
    for (const DType type : kBothTypes) {
        const std::string name = typeName(type);
        for (const auto& [step, words] : kSteps)
            push(table, "adamw", name + words, n,
                [=, step = step](CaseRun& run) { adamw(run, type, n, step); });
        for (const Fading& how : kFadings)
            push(table, "accumulate", name + " " + how.words, n,
                [=](CaseRun& run) { accumulate(run, type, n, how); });
        for (const Dropping& how : kDroppings)
            push(table, "dropout", name + " " + how.words, n,
                [=](CaseRun& run) { dropout(run, type, n, how); });
    }
}

} // namespace

void addUpdateCases(Table& table)
{
    for (const std::int64_t n : kCounts)
        addUpdatesCountCases(table, n);
    Table lines;
    for (const std::int64_t n : kLateCounts)
        addUpdatesCountCases(lines, n);
    addLateStarts(table, lines);
}

} // namespace mr::conformance
