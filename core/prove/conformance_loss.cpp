// softcap and crossEntropy against double precision.
//
// Tolerances count roundings of the formulas in ops.h; u is the unit roundoff of F32, s that of
// the stored type. Each is written where it is used.

#include "core/prove/conformance_shapes.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr::conformance {

namespace {

void softcap(CaseRun& run, const RowShape& s, double spread)
{
    constexpr double kCap = 30.0;
    const Input x = run.random(DType::F32, {s.rows, s.cols}, spread);
    run.call(run.ops().softcap({x.view, static_cast<float>(kCap)}, run.stream()));
    Values want, tolerance;
    for (const double value : x.values) {
        want.push_back(kCap * std::tanh(value / kCap));
        // The quotient's rounding, tanh within 7 u (ex2.approx errs by 4 u, rcp.approx by 2), the
        // product.
        tolerance.push_back(9.0 * kU * std::abs(want.back()));
    }
    run.expect("x", x.view, want, tolerance);
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

void crossEntropy(CaseRun& run, const RowShape& s, LossGradient kind, double cap)
{
    // Inside the cap, if there is one: as softcap() leaves them.
    Input logits = run.random(DType::F32, {s.rows, s.cols}, cap > 0.0 ? 0.1 * cap : 4.0);
    for (double& logit : logits.values)
        logit = cap > 0.0 ? static_cast<double>(static_cast<float>(std::clamp(logit, -cap, cap)))
                          : logit;
    if (cap > 0.0)
        logits = run.given(DType::F32, {s.rows, s.cols}, logits.values);
    Values targets;
    for (std::int64_t t = 0; t < s.rows; ++t)
        targets.push_back(t % 4 == 3 ? -1.0 : static_cast<double>(t * 5 % s.cols));
    const Input target = run.given(DType::I32, {s.rows}, targets);
    const DType type = kind == LossGradient::Bf16 ? DType::BF16 : DType::F32;
    CrossEntropyArgs args{logits.view, target.view, run.blank(DType::F32, {s.rows}), {}, 0.125F,
        static_cast<float>(cap)};
    if (kind == LossGradient::InPlace)
        args.gradLogits = logits.view;
    else if (kind != LossGradient::None)
        args.gradLogits = run.blank(type, {s.rows, s.cols});
    run.call(run.ops().crossEntropy(args, run.stream()));
    const auto scale = static_cast<double>(args.scale);
    // Terms in lanes and chunks: cols / 16 + 64 additions cover every tree of 16 lanes or more.
    const double sumError = (static_cast<double>(s.cols) / 16.0 + 64.0) * kU;
    Values loss, lossTolerance, grad, gradTolerance;
    for (std::int64_t row = 0; row < s.rows; ++row) {
        const LossRow r = lossRow(logits, row, s.cols);
        const std::int64_t t0 = row * s.cols;
        const auto at = static_cast<std::int64_t>(target(row));
        const double wanted = at < 0 ? 0.0 : logits(t0 + at);
        loss.push_back(at < 0 ? 0.0 : std::log(r.total) + r.top - wanted);
        // Each exponent is a rounded difference, of at most top - lowest, about 40.
        lossTolerance.push_back(
            at < 0 ? 0.0
                   : sumError + 40.0 * kU + 3.0 * kU * (std::abs(loss.back()) + r.top - wanted));
        for (std::int64_t c = 0; c < s.cols; ++c) {
            const double distance = r.top - logits(t0 + c);
            const double p = at < 0 ? 0.0 : std::exp(-distance) / r.total;
            const double t = cap > 0.0 ? logits(t0 + c) / cap : 0.0;
            const double slope = 1.0 - t * t;
            grad.push_back(at < 0 ? 0.0 : slope * scale * (p - (c == at ? 1.0 : 0.0)));
            // The slope is a difference to 1: 4 u absolute.
            const double error =
                scale * (p * (sumError + (distance + 48.0) * kU) + (c == at ? 2.0 * kU : 0.0) +
                            (cap > 0.0 ? 4.0 * kU * std::abs(p - (c == at ? 1.0 : 0.0)) : 0.0));
            gradTolerance.push_back(
                at < 0 ? 0.0 : error + unitOf(type) * (std::abs(grad.back()) + error) + 1e-38);
        }
    }
    run.expect("losses", args.losses, loss, lossTolerance);
    if (kind != LossGradient::None)
        run.expect("gradLogits", args.gradLogits, grad, gradTolerance);
}

constexpr std::pair<LossGradient, const char*> kKinds[] = {{LossGradient::None, " losses only"},
    {LossGradient::F32, ""}, {LossGradient::Bf16, " gradient bf16"},
    {LossGradient::InPlace, " in place"}};

void addCrossEntropyCases(Table& table, const RowShape& s)
{
    for (const auto& [kind, words] : kKinds)
        for (const double cap : {0.0, 30.0})
            push(table, "crossEntropy", DType::F32, s,
                (std::string(words) + (cap > 0.0 ? " capped" : "")).c_str(),
                [s, kind = kind, cap](CaseRun& run) { crossEntropy(run, s, kind, cap); });
}

} // namespace

void addLossCases(Table& table)
{
    constexpr RowShape kLogits[] = {{1, 1}, {5, 7}, {9, 517}, {3, 2050}, {0, 24}, {2, 32'000},
        {1, 40'003}, {1, 152'064}}; // long ones: of models, and one that no pack divides
    for (const RowShape& s : kLogits) {
        // Near 0, around the cap and far above it.
        for (const double spread : {0.1, 25.0, 1000.0})
            push(table, "softcap", DType::F32, s,
                (fmt::format(" of numbers around {}", std::to_string(spread))).c_str(),
                [=](CaseRun& run) { softcap(run, s, spread); });
        addCrossEntropyCases(table, s);
    }
    Table late;
    const RowShape some{3, 2050};
    push(late, "softcap", DType::F32, some, "", [=](CaseRun& run) { softcap(run, some, 25.0); });
    addLateStarts(table, late);
}

void addModelSizeLossCases(Table& table)
{
    addCrossEntropyCases(table, {7, 152'064});
}

} // namespace mr::conformance
