// softcap, crossEntropy and the softmax of a vocabulary in parts against double precision.
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

struct LossInputs {
    Input logits;
    Input targets;
    double cap = 0.0; // 0: none
    double scale = 0.125;
};

// Inside the cap, if there is one: as softcap() leaves them.
LossInputs lossInputs(CaseRun& run, const RowShape& s, double cap)
{
    Input logits = run.random(DType::F32, {s.rows, s.cols}, cap > 0.0 ? 0.1 * cap : 4.0);
    for (double& logit : logits.values)
        logit = cap > 0.0 ? static_cast<double>(static_cast<float>(std::clamp(logit, -cap, cap)))
                          : logit;
    if (cap > 0.0)
        logits = run.given(DType::F32, {s.rows, s.cols}, logits.values);
    Values targets;
    for (std::int64_t t = 0; t < s.rows; ++t)
        targets.push_back(t % 4 == 3 ? -1.0 : static_cast<double>(t * 5 % s.cols));
    return {logits, run.given(DType::I32, {s.rows}, targets), cap};
}

// Terms in lanes and chunks: cols / 16 + 64 additions cover every tree of 16 lanes or more.
double sumErrorOf(const RowShape& s)
{
    return (static_cast<double>(s.cols) / 16.0 + 64.0) * kU;
}

void expectLosses(CaseRun& run, const RowShape& s, const LossInputs& in, const TensorView& losses)
{
    Values loss, tolerance;
    for (std::int64_t row = 0; row < s.rows; ++row) {
        const LossRow r = lossRow(in.logits, row, s.cols);
        const auto at = static_cast<std::int64_t>(in.targets(row));
        const double wanted = at < 0 ? 0.0 : in.logits(row * s.cols + at);
        loss.push_back(at < 0 ? 0.0 : std::log(r.total) + r.top - wanted);
        // Each exponent is a rounded difference, of at most top - lowest, about 40.
        tolerance.push_back(at < 0 ? 0.0
                                   : sumErrorOf(s) + 40.0 * kU +
                                         3.0 * kU * (std::abs(loss.back()) + r.top - wanted));
    }
    run.expect("losses", losses, loss, tolerance);
}

// Columns [first, first + the view's) of the gradient.
void expectGradient(CaseRun& run, const RowShape& s, const LossInputs& in, const TensorView& view,
    std::int64_t first = 0)
{
    const double sumError = sumErrorOf(s);
    Values grad, tolerance;
    for (std::int64_t row = 0; row < s.rows; ++row) {
        const LossRow r = lossRow(in.logits, row, s.cols);
        const auto at = static_cast<std::int64_t>(in.targets(row));
        for (std::int64_t c = first; c < first + view.dims[1]; ++c) {
            const double logit = in.logits(row * s.cols + c);
            const double distance = r.top - logit;
            const double p = at < 0 ? 0.0 : std::exp(-distance) / r.total;
            const double t = in.cap > 0.0 ? logit / in.cap : 0.0;
            const double isTarget = c == at ? 1.0 : 0.0;
            grad.push_back(at < 0 ? 0.0 : (1.0 - t * t) * in.scale * (p - isTarget));
            // The slope is a difference to 1: 4 u absolute.
            const double error =
                in.scale * (p * (sumError + (distance + 48.0) * kU) + isTarget * 2.0 * kU +
                               (in.cap > 0.0 ? 4.0 * kU * std::abs(p - isTarget) : 0.0));
            tolerance.push_back(
                at < 0 ? 0.0
                       : error + unitOf(view.dtype) * (std::abs(grad.back()) + error) + 1e-38);
        }
    }
    run.expect("gradLogits", view, grad, tolerance);
}

void crossEntropy(CaseRun& run, const RowShape& s, LossGradient kind, double cap)
{
    const LossInputs in = lossInputs(run, s, cap);
    const DType type = kind == LossGradient::Bf16 ? DType::BF16 : DType::F32;
    CrossEntropyArgs args{in.logits.view, in.targets.view, run.blank(DType::F32, {s.rows}), {},
        static_cast<float>(in.scale), static_cast<float>(cap)};
    if (kind == LossGradient::InPlace)
        args.gradLogits = in.logits.view;
    else if (kind != LossGradient::None)
        args.gradLogits = run.blank(type, {s.rows, s.cols});
    run.call(run.ops().crossEntropy(args, run.stream()));
    expectLosses(run, s, in, args.losses);
    if (kind != LossGradient::None)
        expectGradient(run, s, in, args.gradLogits);
}

// Some columns of a matrix, side by side.
Input columnsOf(
    CaseRun& run, const Input& all, const RowShape& s, std::int64_t first, std::int64_t count)
{
    Values values;
    for (std::int64_t row = 0; row < s.rows; ++row)
        for (std::int64_t c = first; c < first + count; ++c)
            values.push_back(all(row * s.cols + c));
    return run.given(DType::F32, {s.rows, count}, values);
}

// By parts of so many columns, in place for F32.
void softmaxParts(
    CaseRun& run, const RowShape& s, DType type, double cap, std::int64_t columnsOfPart)
{
    const LossInputs in = lossInputs(run, s, cap);
    const std::int64_t parts = (s.cols + columnsOfPart - 1) / columnsOfPart;
    std::vector<Input> logits;
    SoftmaxPartArgs part;
    part.targets = in.targets.view;
    part.tops = run.blank(DType::F32, {s.rows, parts});
    part.sums = run.blank(DType::F32, {s.rows, parts});
    part.targetLogits = run.blank(DType::F32, {s.rows});
    for (; part.part < parts; ++part.part) {
        part.first = part.part * columnsOfPart;
        logits.push_back(
            columnsOf(run, in.logits, s, part.first, std::min(columnsOfPart, s.cols - part.first)));
        part.logits = logits.back().view;
        run.call(run.ops().softmaxPart(part, run.stream()));
    }
    const JoinSoftmaxArgs joined{part.tops, part.sums, part.targets, part.targetLogits,
        run.blank(DType::F32, {s.rows}), run.blank(DType::F32, {s.rows}),
        run.blank(DType::F32, {s.rows})};
    run.call(run.ops().joinSoftmax(joined, run.stream()));
    expectLosses(run, s, in, joined.losses);
    SoftmaxGradientArgs gradient;
    gradient.targets = part.targets;
    gradient.top = joined.top;
    gradient.total = joined.total;
    gradient.scale = static_cast<float>(in.scale);
    gradient.softcap = static_cast<float>(cap);
    for (const Input& each : logits) {
        gradient.logits = each.view;
        gradient.gradLogits =
            type == DType::F32 ? each.view : run.blank(type, {s.rows, each.view.dims[1]});
        run.call(run.ops().softmaxGradient(gradient, run.stream()));
        expectGradient(run, s, in, gradient.gradLogits, gradient.first);
        gradient.first += each.view.dims[1];
    }
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

void addPartCases(Table& table, const char* op, const RowShape& s, std::int64_t columnsOfPart)
{
    for (const DType type : {DType::F32, DType::BF16})
        for (const double cap : {0.0, 30.0})
            push(table, op, type, s,
                fmt::format(" in parts of {}{}", columnsOfPart, cap > 0.0 ? " capped" : "").c_str(),
                [=](CaseRun& run) { softmaxParts(run, s, type, cap, columnsOfPart); });
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
    addPartCases(table, "joinSoftmax", {1, 1}, 1);
    addPartCases(table, "softmaxPart", {9, 517}, 256); // the last one is 5 wide
    addPartCases(table, "softmaxGradient", {5, 520}, 260);
    addPartCases(table, "softmaxPart", {3, 4101}, 2050); // the last one is one column
    addPartCases(table, "softmaxPart", {2, 20'000}, 8192);
    Table late;
    const RowShape some{3, 2050};
    push(late, "softcap", DType::F32, some, "", [=](CaseRun& run) { softcap(run, some, 25.0); });
    addLateStarts(table, late);
}

void addModelSizeLossCases(Table& table)
{
    addCrossEntropyCases(table, {7, 152'064});
    addPartCases(table, "softmaxPart", {7, 152'064}, 8192);
}

} // namespace mr::conformance
