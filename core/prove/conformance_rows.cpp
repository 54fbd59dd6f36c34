// Ops on rows: rmsNorm, rope, swiglu; against double precision.
//
// Tolerances count roundings of the formulas in ops.h; u is the unit roundoff of F32, s that of
// the stored type. Each is written where it is used.

#include "core/prove/conformance_shapes.h"

#include <numbers>

namespace mr::conformance {

namespace {

double offsetOf(NormGain gain)
{
    return gain == NormGain::OnePlusWeight ? 1.0 : 0.0;
}

const double kGelu = 2.0 * std::sqrt(2.0 / std::numbers::pi);

// Relative error that exp(inner) takes from GELU's inner value: four roundings of a number of its
// size.
double innerError(GateActivation activation, double inner)
{
    return activation == GateActivation::Silu ? 0.0 : 4.0 * kU * std::abs(inner);
}

void rmsNorm(CaseRun& run, DType type, const RowShape& s, bool residual, NormGain gain)
{
    const Input x = run.random(type, {s.rows, s.cols});
    const Input r = residual ? run.random(type, {s.rows, s.cols}) : Input{};
    const Input weight = run.random(type, {s.cols});
    RmsNormArgs args{x.view, r.view, weight.view, {}, {}, {}, 1e-5F, gain};
    args.sum = residual ? run.blank(type, {s.rows, s.cols}) : TensorView{};
    args.out = run.blank(type, {s.rows, s.cols});
    args.rstd = run.blank(DType::F32, {s.rows});
    run.call(run.ops().rmsNorm(args, run.stream()));
    Values sum = x.values;
    for (std::size_t i = 0; residual && i < sum.size(); ++i)
        sum[i] = static_cast<double>(
            roundTo(type, static_cast<float>(x.values[i]) + static_cast<float>(r.values[i])));
    // The mean of n squares: (n + 2) u relative; eps, root and quotient: halved, then 4 u more.
    const double relative = (0.5 * static_cast<double>(s.cols) + 6.0) * kU;
    // The normed value is rounded to the type before the product, the product after it; 1 + weight
    // is rounded once, to an F32.
    const double outRelative = relative + 2.0 * kU + 2.01 * unitOf(type);
    Values out, outTolerance, rstd, rstdTolerance;
    for (std::int64_t t = 0; t < s.rows; ++t) {
        double squares = 0.0;
        for (std::int64_t c = 0; c < s.cols; ++c)
            squares += std::pow(sum[static_cast<std::size_t>(t * s.cols + c)], 2.0);
        rstd.push_back(
            1.0 / std::sqrt(squares / static_cast<double>(s.cols) + static_cast<double>(args.eps)));
        rstdTolerance.push_back(relative * rstd.back());
        for (std::int64_t c = 0; c < s.cols; ++c) {
            out.push_back((weight(c) + offsetOf(gain)) *
                          sum[static_cast<std::size_t>(t * s.cols + c)] * rstd.back());
            outTolerance.push_back(outRelative * std::abs(out.back()));
        }
    }
    run.expect("rstd", args.rstd, rstd, rstdTolerance);
    run.expect("out", args.out, out, outTolerance);
    if (residual)
        run.expectExactly("sum", args.sum, sum);
}

struct NormInputs {
    Input gradOut, x, weight, rstd, residual, before;
    NormGain gain = NormGain::Weight;
};

void expectNormInputGradient(CaseRun& run, const TensorView& gradX, const NormInputs& in,
    DType type, const RowShape& s, bool residual)
{
    // sum of g w n: (n + 4) u of the sum of magnitudes; the rest of the formula: 6 roundings; 1 +
    // w: 2, one in the sum and one outside.
    const double relative = (static_cast<double>(s.cols) + 12.0) * kU;
    Values want, tolerance;
    for (std::int64_t t = 0; t < s.rows; ++t) {
        double mean = 0.0;
        double size = 0.0;
        const auto normed = [&](std::int64_t c) { return in.x(t * s.cols + c) * in.rstd(t); };
        const auto grad = [&](std::int64_t c) {
            return in.gradOut(t * s.cols + c) * (in.weight(c) + offsetOf(in.gain));
        };
        for (std::int64_t c = 0; c < s.cols; ++c) {
            mean += grad(c) * normed(c) / static_cast<double>(s.cols);
            size += std::abs(grad(c) * normed(c)) / static_cast<double>(s.cols);
        }
        for (std::int64_t c = 0; c < s.cols; ++c) {
            const double r = residual ? in.residual(t * s.cols + c) : 0.0;
            want.push_back(in.rstd(t) * (grad(c) - normed(c) * mean) + r);
            const double parts =
                in.rstd(t) * (std::abs(grad(c)) + std::abs(normed(c)) * size) + std::abs(r);
            tolerance.push_back(
                relative * parts + unitOf(type) * (std::abs(want.back()) + relative * parts));
        }
    }
    run.expect("gradX", gradX, want, tolerance);
}

// With a residual in place and a sum to add to, or without either.
void rmsNormBackward(CaseRun& run, DType type, const RowShape& s, bool both, NormGain gain)
{
    const bool residual = both;
    const bool accumulate = both;
    NormInputs in;
    in.gain = gain;
    in.gradOut = run.random(type, {s.rows, s.cols});
    in.x = run.random(type, {s.rows, s.cols});
    in.weight = run.random(type, {s.cols});
    Values rstd;
    for (std::int64_t t = 0; t < s.rows; ++t)
        rstd.push_back(static_cast<double>(0.5F + 0.01F * static_cast<float>(t % 50)));
    in.rstd = run.given(DType::F32, {s.rows}, rstd);
    in.residual = residual ? run.random(type, {s.rows, s.cols}) : Input{};
    in.before = run.random(DType::F32, {s.cols});
    RmsNormBackwardArgs args{in.gradOut.view, in.x.view, in.weight.view, in.rstd.view,
        in.residual.view, {}, in.before.view, {}, accumulate, gain};
    args.gradX = residual ? in.residual.view : run.blank(type, {s.rows, s.cols}); // in place
    args.partial = run.blank(DType::F32, {(s.rows + kNormRowBlock - 1) / kNormRowBlock, s.cols});
    run.call(run.ops().rmsNormBackward(args, run.stream()));
    expectNormInputGradient(run, args.gradX, in, type, s, residual);
    // The normed value is rounded to the type; then a sum over rows.
    const double relative =
        (static_cast<double>(s.rows) + 4.0) * kU + (type == DType::BF16 ? kUBf16 : 0.0);
    Values want, tolerance;
    for (std::int64_t c = 0; c < s.cols; ++c) {
        double sum = 0.0;
        double size = 0.0;
        for (std::int64_t t = 0; t < s.rows; ++t) {
            const double term = in.gradOut(t * s.cols + c) * in.x(t * s.cols + c) * in.rstd(t);
            sum += term;
            size += std::abs(term);
        }
        want.push_back(sum + (accumulate ? in.before(c) : 0.0));
        tolerance.push_back(relative * size + 2.0 * kU * std::abs(want.back()));
    }
    run.expect("gradWeight", args.gradWeight, want, tolerance);
}

// The gradient of a BF16 weight is that in F32, rounded.
void roundingTheNorm(CaseRun& run, const RowShape& s, NormGain gain)
{
    constexpr DType kType = DType::BF16;
    const Input gradOut = run.random(kType, {s.rows, s.cols});
    const Input x = run.random(kType, {s.rows, s.cols});
    const Input weight = run.random(kType, {s.cols});
    const Input rstd = run.random(DType::F32, {s.rows});
    RmsNormBackwardArgs args{
        gradOut.view, x.view, weight.view, rstd.view, {}, {}, {}, {}, false, gain};
    args.gradX = run.blank(kType, {s.rows, s.cols});
    args.gradWeight = run.blank(DType::F32, {s.cols});
    args.partial = run.blank(DType::F32, {(s.rows + kNormRowBlock - 1) / kNormRowBlock, s.cols});
    run.call(run.ops().rmsNormBackward(args, run.stream()));
    const TensorView want = run.rounded(args.gradWeight);
    args.gradWeight = run.blank(kType, {s.cols});
    run.call(run.ops().rmsNormBackward(args, run.stream()));
    run.expectSame("gradWeight", args.gradWeight, want);
}

// Without a gradient of the weight, gradX has the bits it has beside one.
void frozenNorm(CaseRun& run, DType type, const RowShape& s, NormGain gain)
{
    const Input gradOut = run.random(type, {s.rows, s.cols});
    const Input x = run.random(type, {s.rows, s.cols});
    const Input weight = run.random(type, {s.cols});
    const Input rstd = run.random(DType::F32, {s.rows});
    RmsNormBackwardArgs args{
        gradOut.view, x.view, weight.view, rstd.view, {}, {}, {}, {}, false, gain};
    args.gradX = run.blank(type, {s.rows, s.cols});
    args.partial = run.blank(DType::F32, {(s.rows + kNormRowBlock - 1) / kNormRowBlock, s.cols});
    args.gradWeight = run.blank(DType::F32, {s.cols});
    run.call(run.ops().rmsNormBackward(args, run.stream()));
    const TensorView want = args.gradX;
    args.gradX = run.blank(type, {s.rows, s.cols});
    args.gradWeight = {};
    run.call(run.ops().rmsNormBackward(args, run.stream()));
    run.expectSame("gradX", args.gradX, want);
}

// `still`: elements at the end of each head that do not turn. Where neighbours turn, the first head
// stays, too.
void rope(CaseRun& run, DType type, const RowShape& s, bool inverse, int still, RopePairs pairs)
{
    constexpr int kHeads = 3;
    const bool isHalves = pairs == RopePairs::Halves;
    const int firstHead = isHalves ? 0 : 1;
    constexpr std::int64_t kPositions = 50;
    const int rotaryDim = 2 * static_cast<int>((s.cols + 1) / 2);
    const int headDim = rotaryDim + still;
    const std::int64_t half = rotaryDim / 2;
    // The last head stays.
    const std::int64_t columns = (firstHead + kHeads + 1) * std::int64_t{headDim};
    const Input x = run.random(type, {s.rows, columns});
    Values positions;
    for (std::int64_t t = 0; t < s.rows; ++t)
        positions.push_back(static_cast<double>((t * 3) % kPositions));
    const Input at = run.given(DType::I32, {s.rows}, positions);
    const Input cosine = run.random(DType::F32, {kPositions, half});
    const Input sine = run.random(DType::F32, {kPositions, half});
    const RopeArgs args{x.view, at.view, cosine.view, sine.view, kHeads, headDim, rotaryDim,
        inverse, pairs, firstHead};
    run.call(run.ops().rope(args, run.stream()));
    Values want = x.values;
    Values tolerance(want.size(), 0.0);
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t h = 0; h < kHeads; ++h)
            for (std::int64_t i = 0; i < half; ++i) {
                const std::int64_t head = t * columns + (firstHead + h) * headDim;
                const std::int64_t low = head + (isHalves ? i : 2 * i);
                const std::int64_t high = low + (isHalves ? half : 1);
                const std::int64_t entry = static_cast<std::int64_t>(at(t)) * half + i;
                const double c = cosine(entry);
                const double n = inverse ? -sine(entry) : sine(entry);
                const auto put = [&](std::int64_t where, double a, double b) {
                    want[static_cast<std::size_t>(where)] = a + b;
                    // Two products and their sum, then the store.
                    tolerance[static_cast<std::size_t>(where)] =
                        2.0 * kU * (std::abs(a) + std::abs(b)) +
                        1.01 * unitOf(type) * std::abs(a + b);
                };
                put(low, x(low) * c, -x(high) * n);
                put(high, x(high) * c, x(low) * n);
            }
    run.expect("x", args.x, want, tolerance);
}

// u(x) of GateActivation and its derivative.
double innerOf(GateActivation activation, double x)
{
    return activation == GateActivation::Silu ? x : kGelu * (x + 0.044715 * x * x * x);
}

double slopeOf(GateActivation activation, double x)
{
    return activation == GateActivation::Silu ? 1.0 : kGelu * (1.0 + 3.0 * 0.044715 * x * x);
}

// Below exp's range, at -u near 88, a sigmoid is 0 instead of its tiny remainder.
constexpr double kFlushed = 1e-38;

double sigmoid(double x)
{
    return 1.0 / (1.0 + std::exp(-x));
}

void swiglu(CaseRun& run, DType type, const RowShape& s, GateActivation activation)
{
    const Input gateUp = run.random(type, {s.rows, 2 * s.cols}, 4.0);
    const SwigluArgs args{gateUp.view, run.blank(type, {s.rows, s.cols}), activation};
    run.call(run.ops().swiglu(args, run.stream()));
    Values want, tolerance;
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t c = 0; c < s.cols; ++c) {
            const double gate = gateUp(t * 2 * s.cols + c);
            const double inner = innerOf(activation, gate);
            const double product = gate * gateUp(t * 2 * s.cols + s.cols + c);
            want.push_back(product * sigmoid(inner));
            // exp 4 u, its sum, quotient and two products; exp makes 4 u of u a relative error.
            tolerance.push_back((10.0 * kU + innerError(activation, inner) + 1.01 * unitOf(type)) *
                                    std::abs(want.back()) +
                                kFlushed * (1.0 + std::abs(product)));
        }
    run.expect("out", args.out, want, tolerance);
}

void swigluBackward(
    CaseRun& run, DType type, const RowShape& s, bool inPlace, GateActivation activation)
{
    const Input gateUp = run.random(type, {s.rows, 2 * s.cols}, 4.0);
    const Input gradOut = run.random(type, {s.rows, s.cols});
    const SwigluBackwardArgs args{gateUp.view, gradOut.view,
        inPlace ? gateUp.view : run.blank(type, {s.rows, 2 * s.cols}), activation};
    run.call(run.ops().swigluBackward(args, run.stream()));
    Values want(gateUp.values.size());
    Values tolerance(want.size());
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t c = 0; c < s.cols; ++c) {
            const std::int64_t at = t * 2 * s.cols + c;
            const double g = gateUp(at);
            const double u = gateUp(at + s.cols);
            const double grad = gradOut(t * s.cols + c);
            const double inner = innerOf(activation, g);
            const double steep = g * slopeOf(activation, g);
            const double sg = sigmoid(inner);
            const double unit = 16.0 * kU + 2.0 * innerError(activation, inner);
            // `whole`: the magnitude of the other factor of the sigmoid.
            const auto put = [&](std::int64_t where, double value, double whole) {
                const double size = sg * whole;
                want[static_cast<std::size_t>(where)] = value;
                tolerance[static_cast<std::size_t>(where)] =
                    unit * size + unitOf(type) * (std::abs(value) + unit * size) +
                    kFlushed * (1.0 + whole);
            };
            // 1 - sigmoid cancels: its error is that of sigmoid, so the bound has |g u'| whole.
            put(at, grad * u * sg * (1.0 + steep * (1.0 - sg)),
                std::abs(grad * u) * (1.0 + std::abs(steep)));
            put(at + s.cols, grad * g * sg, std::abs(grad * g));
        }
    run.expect("gradGateUp", args.gradGateUp, want, tolerance);
}

void addTypedCases(Table& table, DType type, const RowShape& s)
{
    for (const bool on : {false, true}) {
        const int still = on ? static_cast<int>(s.cols) : 1;
        push(table, "rope", type, s, on ? " inverse" : "",
            [=](CaseRun& run) { rope(run, type, s, on, 0, RopePairs::Halves); });
        push(table, "rope", type, s, on ? " inverse, half turns" : " all but one turn",
            [=](CaseRun& run) { rope(run, type, s, on, still, RopePairs::Halves); });
        push(table, "rope", type, s, on ? " inverse, neighbours" : " neighbours",
            [=](CaseRun& run) { rope(run, type, s, on, 0, RopePairs::Neighbours); });
        push(table, "rope", type, s,
            on ? " inverse, neighbours, half turns" : " neighbours, all but one turn",
            [=](CaseRun& run) { rope(run, type, s, on, still, RopePairs::Neighbours); });
    }
}

void addNormCases(Table& table, DType type, const RowShape& s, NormGain gain)
{
    const std::string more = gain == NormGain::OnePlusWeight ? " one plus weight" : "";
    for (const bool on : {false, true}) {
        push(table, "rmsNorm", type, s, (more + (on ? " residual" : "")).c_str(),
            [=](CaseRun& run) { rmsNorm(run, type, s, on, gain); });
        push(table, "rmsNormBackward", type, s,
            (more + (on ? " residual in place, accumulate" : "")).c_str(),
            [=](CaseRun& run) { rmsNormBackward(run, type, s, on, gain); });
    }
    if (type == DType::BF16)
        push(table, "rmsNormBackward", type, s, (more + " rounded").c_str(),
            [=](CaseRun& run) { roundingTheNorm(run, s, gain); });
    push(table, "rmsNormBackward", type, s, (more + " frozen").c_str(),
        [=](CaseRun& run) { frozenNorm(run, type, s, gain); });
}

void addGateCases(Table& table, DType type, const RowShape& s, GateActivation activation)
{
    const std::string more = activation == GateActivation::GeluTanh ? " gelu" : "";
    push(table, "swiglu", type, s, more.c_str(),
        [=](CaseRun& run) { swiglu(run, type, s, activation); });
    for (const bool on : {false, true})
        push(table, "swigluBackward", type, s, (more + (on ? " in place" : "")).c_str(),
            [=](CaseRun& run) { swigluBackward(run, type, s, on, activation); });
}

void addShape(Table& table, DType type, const RowShape& s)
{
    addTypedCases(table, type, s);
    for (const NormGain gain : {NormGain::Weight, NormGain::OnePlusWeight})
        addNormCases(table, type, s, gain);
    for (const auto activation : {GateActivation::Silu, GateActivation::GeluTanh})
        addGateCases(table, type, s, activation);
}

} // namespace

void addRowCases(Table& table)
{
    for (const DType type : kBothTypes)
        for (const RowShape& s : kRowShapes)
            addShape(table, type, s);
}

void addModelSizeRowCases(Table& table)
{
    for (const DType type : kBothTypes)
        for (const RowShape& s : {RowShape{130, 4096}, RowShape{20, 17'000}})
            addShape(table, type, s);
}

} // namespace mr::conformance
