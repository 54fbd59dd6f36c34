// adamwCompact: to the bit against the written order of core/device/compact_state.h, and its codes
// and scales against double precision.
//
// Tolerances of the codes are half a step of the code, for its rounding, plus the error of the F32
// value in front of it. m: two roundings of terms no larger than T, the group's largest beta1 |m| +
// (1 - beta1) |g|, so 3 units of T in m and in its scale. v: five units of the root.

#include "core/device/compact_reference.h"
#include "core/prove/conformance_counts.h"

#include <algorithm>

namespace mr::conformance {

namespace {

constexpr auto kGroup = static_cast<std::int64_t>(kCompactGroup);

// The planes of a state on the host.
struct State {
    std::vector<std::uint16_t> weight;
    std::vector<std::int8_t> remainder;
    std::vector<std::int8_t> m;
    std::vector<std::uint8_t> v;
    std::vector<float> mScale;
    std::vector<float> vScale;

    explicit State(std::size_t n)
        : weight(n)
        , remainder(n)
        , m(n)
        , v(n)
        , mScale(compactGroups(n))
        , vScale(compactGroups(n))
    {
    }

    CompactRange range()
    {
        return {weight.data(), remainder.data(), m.data(), v.data(), mScale.data(), vScale.data(),
            weight.size()};
    }

    void encode(const std::vector<CompactValue>& values)
    {
        for (std::size_t first = 0; first < values.size(); first += kCompactGroup)
            encodeReferenceGroup(
                values.data(), first, std::min(values.size(), first + kCompactGroup), range());
    }
};

template <typename T>
Values numbers(const std::vector<T>& plane)
{
    return {plane.begin(), plane.end()};
}

// The second group: masters half way between two weights, which no gradient moves.
bool isTie(std::size_t i)
{
    return i / kCompactGroup == 1;
}

State someState(CaseRun& run, std::int64_t n)
{
    const Values p = run.random(DType::F32, {n}).values;
    const Values m = run.random(DType::F32, {n}, 1e-3).values;
    const Values root = run.random(DType::F32, {n}, 1e-3).values;
    std::vector<CompactValue> values(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) // the fourth group is fresh
        if (i / kCompactGroup != 3)
            values[i] = {asFloat(p[i]), asFloat(m[i]), std::fabs(asFloat(root[i]))};
    State state(p.size());
    state.encode(values);
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (!isTie(i))
            continue;
        state.remainder[i] = i % 2 == 0 ? 127 : -127;
        state.m[i] = 0;
        state.v[i] = 0;
    }
    return state;
}

// Moments after the update in double precision, with the tolerances of the header.
struct Moments {
    Values mScale, mScaleError, m, mError, vScale, vScaleError, v, vError;
};

void addGroup(Moments& to, const Values& m, const Values& root, double terms)
{
    const double mError = 3.0 * kU * terms;
    double mScale = 1e-12;
    double vScale = 0.0;
    for (const double x : m)
        mScale = std::max(mScale, std::abs(x));
    for (const double r : root)
        vScale = std::max(vScale, r);
    to.mScale.push_back(mScale);
    to.mScaleError.push_back(mError + kU * mScale);
    to.vScale.push_back(vScale);
    to.vScaleError.push_back(5.0 * kU * vScale);
    for (const double x : m) {
        to.m.push_back(254.0 * x / (mScale + std::abs(x)));
        to.mError.push_back(0.5 + 254.0 * (2.0 * mError / mScale + 4.0 * kU));
    }
    for (const double r : root) {
        to.v.push_back(r > 0.0 ? std::max(1.0, 255.0 * r / vScale) : 0.0);
        to.vError.push_back(0.5 + 255.0 * 12.0 * kU);
    }
}

Moments momentsInDouble(State& before, const Values& grad, const AdamwFactors& f, double clip)
{
    Moments moments;
    const auto beta1 = static_cast<double>(f.beta1);
    const auto beta2 = static_cast<double>(f.beta2);
    for (std::size_t first = 0; first < grad.size(); first += kCompactGroup) {
        Values m, root;
        double terms = 0.0;
        for (std::size_t i = first; i < std::min(grad.size(), first + kCompactGroup); ++i) {
            const CompactValue old = decodeReference(before.range(), i);
            const double g = grad[i] * clip;
            const double oldM = beta1 * static_cast<double>(old.m);
            const double newM = static_cast<double>(f.oneMinusBeta1) * g;
            m.push_back(oldM + newM);
            terms = std::max(terms, std::abs(oldM) + std::abs(newM));
            root.push_back(std::sqrt(beta2 * std::pow(static_cast<double>(old.root), 2.0) +
                                     static_cast<double>(f.oneMinusBeta2) * g * g));
        }
        addGroup(moments, m, root, terms);
    }
    return moments;
}

AdamwFactors someFactors()
{
    AdamwFactors factors;
    factors.decay = 0.9999F;
    factors.stepSize = 1.3e-3F;
    factors.inverseSqrtBias2 = 17.5F;
    return factors;
}

State updated(State state, const Values& grad, float clip, bool decayed)
{
    std::vector<CompactValue> values;
    for (std::size_t i = 0; i < grad.size(); ++i)
        values.push_back(updateReference(
            decodeReference(state.range(), i), asFloat(grad[i]), someFactors(), clip, decayed));
    state.encode(values);
    return state;
}

void expectState(CaseRun& run, const AdamwCompactArgs& args, const State& want)
{
    run.expectExactly("weight", args.weight, numbers(want.weight));
    run.expectExactly("remainder", args.remainder, numbers(want.remainder));
    run.expectExactly("m", args.m, numbers(want.m));
    run.expectExactly("v", args.v, numbers(want.v));
    run.expectExactly("mScale", args.mScale, numbers(want.mScale));
    run.expectExactly("vScale", args.vScale, numbers(want.vScale));
}

void adamwCompact(CaseRun& run, DType type, std::int64_t n, Step step)
{
    State state = someState(run, n);
    Values gradients = run.random(type, {n}, 1e-3).values;
    for (std::size_t i = 0; i < gradients.size(); ++i)
        if (isTie(i))
            gradients[i] = 0.0;
    const Input grad = run.given(type, {n}, gradients);
    StepScalars scalars;
    scalars.clipFactor = 0.7F;
    scalars.finite = step == Step::NotFinite ? 0 : 1;
    const std::int64_t groups = (n + kGroup - 1) / kGroup;
    const AdamwCompactArgs args{run.given(DType::U16, {n}, numbers(state.weight)).view,
        run.given(DType::I8, {n}, numbers(state.remainder)).view,
        run.given(DType::I8, {n}, numbers(state.m)).view,
        run.given(DType::U8, {n}, numbers(state.v)).view,
        run.given(DType::F32, {groups}, numbers(state.mScale)).view,
        run.given(DType::F32, {groups}, numbers(state.vScale)).view, grad.view,
        run.given(DType::U8, {sizeof scalars}, bytesOf(scalars)).view, someFactors(),
        step == Step::Decayed};
    run.call(run.ops().adamwCompact(args, run.stream()));
    if (step == Step::NotFinite) {
        expectState(run, args, state);
        return;
    }
    expectState(run, args, updated(state, grad.values, 0.7F, step == Step::Decayed));
    const Moments want =
        momentsInDouble(state, grad.values, someFactors(), static_cast<double>(0.7F));
    run.expect("mScale in double", args.mScale, want.mScale, want.mScaleError);
    run.expect("vScale in double", args.vScale, want.vScale, want.vScaleError);
    run.expect("m in double", args.m, want.m, want.mError);
    run.expect("v in double", args.v, want.v, want.vError);
}

void addCompactCountCases(Table& table, std::int64_t n)
{
    for (const DType type : kBothTypes)
        for (const auto& [step, words] : kSteps)
            push(table, "adamwCompact", std::string(typeName(type)) + words, n,
                [=, step = step](CaseRun& run) { adamwCompact(run, type, n, step); });
}

} // namespace

void addCompactCases(Table& table)
{
    for (const std::int64_t n : kCounts)
        addCompactCountCases(table, n);
    Table lines;
    for (const std::int64_t n : kLateCounts)
        addCompactCountCases(lines, n);
    addLateStarts(table, lines);
}

} // namespace mr::conformance
