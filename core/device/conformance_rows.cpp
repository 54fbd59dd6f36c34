// Ops on rows: rmsNorm, rope, swiglu, crossEntropy; against double precision.
//
// Tolerances count roundings of the formulas in ops.h; u is the unit roundoff of F32, s that of
// the stored type. Each is written where it is used.

#include "core/device/conformance_shapes.h"

#include <algorithm>

namespace mr::conformance {

namespace {

void rmsNorm(CaseRun& run, DType type, const RowShape& s, bool residual)
{
    const Input x = run.random(type, {s.rows, s.cols});
    const Input r = residual ? run.random(type, {s.rows, s.cols}) : Input{};
    const Input weight = run.random(type, {s.cols});
    RmsNormArgs args{x.view, r.view, weight.view, {}, {}, {}, 1e-5F};
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
    // The normed value is rounded to the type before the product, the product after it.
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
            out.push_back(weight(c) * sum[static_cast<std::size_t>(t * s.cols + c)] * rstd.back());
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
};

void expectNormInputGradient(CaseRun& run, const TensorView& gradX, const NormInputs& in,
    DType type, const RowShape& s, bool residual)
{
    // sum of g w n: (n + 4) u of the sum of magnitudes; the rest of the formula: 6 roundings.
    const double relative = (static_cast<double>(s.cols) + 10.0) * kU;
    Values want, tolerance;
    for (std::int64_t t = 0; t < s.rows; ++t) {
        double mean = 0.0;
        double size = 0.0;
        const auto normed = [&](std::int64_t c) { return in.x(t * s.cols + c) * in.rstd(t); };
        const auto grad = [&](std::int64_t c) { return in.gradOut(t * s.cols + c) * in.weight(c); };
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

void rmsNormBackward(CaseRun& run, DType type, const RowShape& s, bool residual, bool accumulate)
{
    NormInputs in;
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
        in.residual.view, {}, in.before.view, {}, accumulate};
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

void rope(CaseRun& run, DType type, const RowShape& s, bool inverse)
{
    constexpr int kHeads = 3;
    constexpr std::int64_t kPositions = 50;
    const int headDim = 2 * static_cast<int>((s.cols + 1) / 2);
    const std::int64_t half = headDim / 2;
    const std::int64_t columns = (kHeads + 1) * std::int64_t{headDim}; // the last head stays
    const Input x = run.random(type, {s.rows, columns});
    Values positions;
    for (std::int64_t t = 0; t < s.rows; ++t)
        positions.push_back(static_cast<double>((t * 3) % kPositions));
    const Input at = run.given(DType::I32, {s.rows}, positions);
    const Input cosine = run.random(DType::F32, {kPositions, half});
    const Input sine = run.random(DType::F32, {kPositions, half});
    const RopeArgs args{x.view, at.view, cosine.view, sine.view, kHeads, headDim, inverse};
    run.call(run.ops().rope(args, run.stream()));
    Values want = x.values;
    Values tolerance(want.size(), 0.0);
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t h = 0; h < kHeads; ++h)
            for (std::int64_t i = 0; i < half; ++i) {
                const std::int64_t low = t * columns + h * headDim + i;
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
                put(low, x(low) * c, -x(low + half) * n);
                put(low + half, x(low + half) * c, x(low) * n);
            }
    run.expect("x", args.x, want, tolerance);
}

double sigmoid(double x)
{
    return 1.0 / (1.0 + std::exp(-x));
}

void swiglu(CaseRun& run, DType type, const RowShape& s)
{
    const Input gateUp = run.random(type, {s.rows, 2 * s.cols}, 4.0);
    const SwigluArgs args{gateUp.view, run.blank(type, {s.rows, s.cols})};
    run.call(run.ops().swiglu(args, run.stream()));
    Values want, tolerance;
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t c = 0; c < s.cols; ++c) {
            const double gate = gateUp(t * 2 * s.cols + c);
            want.push_back(gate * sigmoid(gate) * gateUp(t * 2 * s.cols + s.cols + c));
            // exp 4 u, its sum, quotient and two products.
            tolerance.push_back((10.0 * kU + 1.01 * unitOf(type)) * std::abs(want.back()));
        }
    run.expect("out", args.out, want, tolerance);
}

void swigluBackward(CaseRun& run, DType type, const RowShape& s, bool inPlace)
{
    const Input gateUp = run.random(type, {s.rows, 2 * s.cols}, 4.0);
    const Input gradOut = run.random(type, {s.rows, s.cols});
    const SwigluBackwardArgs args{
        gateUp.view, gradOut.view, inPlace ? gateUp.view : run.blank(type, {s.rows, 2 * s.cols})};
    run.call(run.ops().swigluBackward(args, run.stream()));
    Values want(gateUp.values.size());
    Values tolerance(want.size());
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t c = 0; c < s.cols; ++c) {
            const std::int64_t at = t * 2 * s.cols + c;
            const double g = gateUp(at);
            const double u = gateUp(at + s.cols);
            const double grad = gradOut(t * s.cols + c);
            const double sg = sigmoid(g);
            const auto put = [&](std::int64_t where, double value, double size) {
                want[static_cast<std::size_t>(where)] = value;
                tolerance[static_cast<std::size_t>(where)] =
                    16.0 * kU * size + unitOf(type) * (std::abs(value) + 16.0 * kU * size);
            };
            // 1 - sigmoid cancels: its error is that of sigmoid, so the bound has |g| whole.
            put(at, grad * u * sg * (1.0 + g * (1.0 - sg)),
                std::abs(grad * u) * sg * (1.0 + std::abs(g)));
            put(at + s.cols, grad * g * sg, std::abs(grad * g * sg));
        }
    run.expect("gradGateUp", args.gradGateUp, want, tolerance);
}

enum class LossGradient { None, Bf16, F32, InPlace };

struct LossRow {
    double top = -1e300;
    double total = 0.0;
};

LossRow lossRow(const Input& logits, std::int64_t row, std::int64_t cols)
{
    LossRow r;
    for (std::int64_t c = 0; c < cols; ++c)
        r.top = std::max(r.top, logits(row * cols + c));
    for (std::int64_t c = 0; c < cols; ++c)
        r.total += std::exp(logits(row * cols + c) - r.top);
    return r;
}

void crossEntropy(CaseRun& run, const RowShape& s, LossGradient kind)
{
    const Input logits = run.random(DType::F32, {s.rows, s.cols}, 4.0);
    Values targets;
    for (std::int64_t t = 0; t < s.rows; ++t)
        targets.push_back(t % 4 == 3 ? -1.0 : static_cast<double>(t * 5 % s.cols));
    const Input target = run.given(DType::I32, {s.rows}, targets);
    const DType type = kind == LossGradient::Bf16 ? DType::BF16 : DType::F32;
    CrossEntropyArgs args{logits.view, target.view, run.blank(DType::F32, {s.rows}), {}, 0.125F};
    if (kind == LossGradient::InPlace)
        args.gradLogits = logits.view;
    else if (kind != LossGradient::None)
        args.gradLogits = run.blank(type, {s.rows, s.cols});
    run.call(run.ops().crossEntropy(args, run.stream()));
    const auto scale = static_cast<double>(args.scale);
    // Terms in lanes and chunks: cols / 16 + 64 additions cover every tree of 16 lanes or more.
    const double sumError = (static_cast<double>(s.cols) / 16.0 + 64.0) * kU;
    Values loss, lossTolerance, grad, gradTolerance;
    for (std::int64_t t = 0; t < s.rows; ++t) {
        const LossRow r = lossRow(logits, t, s.cols);
        const auto at = static_cast<std::int64_t>(target(t));
        const double wanted = at < 0 ? 0.0 : logits(t * s.cols + at);
        loss.push_back(at < 0 ? 0.0 : std::log(r.total) + r.top - wanted);
        // Each exponent is a rounded difference, of at most top - lowest, about 40.
        lossTolerance.push_back(
            at < 0 ? 0.0
                   : sumError + 40.0 * kU + 3.0 * kU * (std::abs(loss.back()) + r.top - wanted));
        for (std::int64_t c = 0; c < s.cols; ++c) {
            const double distance = r.top - logits(t * s.cols + c);
            const double p = at < 0 ? 0.0 : std::exp(-distance) / r.total;
            grad.push_back(at < 0 ? 0.0 : scale * (p - (c == at ? 1.0 : 0.0)));
            const double error =
                scale * (p * (sumError + (distance + 48.0) * kU) + (c == at ? 2.0 * kU : 0.0));
            gradTolerance.push_back(
                at < 0 ? 0.0 : error + unitOf(type) * (std::abs(grad.back()) + error) + 1e-38);
        }
    }
    run.expect("losses", args.losses, loss, lossTolerance);
    if (kind != LossGradient::None)
        run.expect("gradLogits", args.gradLogits, grad, gradTolerance);
}

void addTypedCases(Table& table, DType type, const RowShape& s)
{
    push(table, "rmsNorm", type, s, "", [=](CaseRun& run) { rmsNorm(run, type, s, false); });
    push(
        table, "rmsNorm", type, s, " residual", [=](CaseRun& run) { rmsNorm(run, type, s, true); });
    for (const bool on : {false, true}) {
        push(table, "rmsNormBackward", type, s, on ? " residual in place, accumulate" : "",
            [=](CaseRun& run) { rmsNormBackward(run, type, s, on, on); });
        push(table, "rope", type, s, on ? " inverse" : "",
            [=](CaseRun& run) { rope(run, type, s, on); });
        push(table, "swigluBackward", type, s, on ? " in place" : "",
            [=](CaseRun& run) { swigluBackward(run, type, s, on); });
    }
    push(table, "swiglu", type, s, "", [=](CaseRun& run) { swiglu(run, type, s); });
}

} // namespace

void addRowCases(Table& table)
{
    for (const DType type : kBothTypes)
        for (const RowShape& s : kRowShapes)
            addTypedCases(table, type, s);
    constexpr RowShape kLogits[] = {{1, 1}, {5, 7}, {9, 517}, {3, 2050}, {0, 24}};
    constexpr std::pair<LossGradient, const char*> kKinds[] = {{LossGradient::None, " losses only"},
        {LossGradient::F32, ""}, {LossGradient::Bf16, " gradient bf16"},
        {LossGradient::InPlace, " in place"}};
    for (const RowShape& s : kLogits)
        for (const auto& [kind, words] : kKinds)
            push(table, "crossEntropy", DType::F32, s, words,
                [s = s, kind = kind](CaseRun& run) { crossEntropy(run, s, kind); });
}

} // namespace mr::conformance
