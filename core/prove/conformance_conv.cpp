// causalConv and its backward: against double precision,
// and bit for bit against calls in parts or of single documents.
//
// Tolerances count roundings of the formulas in recurrent_ops.h; u is the unit roundoff of F32.
// Each is written where it is used. sigmoid takes 8 u at most: an exponential of 4, a sum, a
// quotient.

#include "core/prove/conformance_counts.h"
#include "core/prove/conformance_recurrent.h"

#include <fmt/format.h>

namespace mr::conformance {

namespace {

struct ConvShape {
    std::int64_t rows, channels, taps, cols, firstColumn;
    Lengths lengths;
};

// One element; documents of one row, shorter than the taps, longer than a block, also with the
// fewest taps; strips that are not full, and more than a block of threads has; windows of wider
// rows; no row.
constexpr ConvShape kConvShapes[] = {{1, 1, 2, 1, 0, {}}, {7, 5, 3, 9, 2, {1}},
    {130, 70, 4, 70, 0, {1, 2, 3, 70}}, {65, 128, 4, 160, 16, {}}, {200, 24, 8, 24, 0, {5, 130, 1}},
    {64, 64, 2, 64, 0, {63, 1}}, {66, 6, 2, 6, 0, {}}, {20, 300, 4, 300, 0, {7}},
    {129, 33, 4, 40, 7, {128, 1}}, {0, 16, 4, 16, 0, {}}};

struct ConvInputs {
    Input x, weight, from;
};

ConvInputs convInputs(CaseRun& run, DType type, const ConvShape& s)
{
    return {run.random(type, {s.rows, s.cols}), run.random(type, {s.channels, s.taps}),
        run.given(DType::I32, {s.rows}, documentFrom(documentStarts(s.rows, s.lengths)))};
}

// c[t] of one channel, and the sum of its terms' sizes.
struct ConvSum {
    double value = 0.0;
    double size = 0.0;
};

ConvSum convSum(const ConvShape& s, const ConvInputs& in, std::int64_t t, std::int64_t ch)
{
    ConvSum sum;
    for (std::int64_t j = 0; j < s.taps; ++j)
        if (const std::int64_t at = t - s.taps + 1 + j; static_cast<double>(at) >= in.from(t)) {
            const double term = in.weight(ch * s.taps + j) * in.x(at * s.cols + s.firstColumn + ch);
            sum.value += term;
            sum.size += std::abs(term);
        }
    return sum;
}

// Relative to the sum of the terms' sizes.
double convUnits(const ConvShape& s)
{
    return (static_cast<double>(s.taps) + 1.0) * kU;
}

CausalConvArgs convArgs(
    CaseRun& run, DType type, const ConvShape& s, const ConvInputs& in, bool silu)
{
    return {in.x.view, in.weight.view, in.from.view, run.blank(type, {s.rows, s.channels}), {},
        s.firstColumn, silu, false};
}

// Documents alone have the bits they have in the packed rows.
void convAlone(CaseRun& run, const ConvShape& s, const CausalConvArgs& args)
{
    const auto starts = documentStarts(s.rows, s.lengths);
    const TensorView zeros =
        run.given(DType::I32, {s.rows}, Values(static_cast<std::size_t>(s.rows), 0.0)).view;
    const TensorView out = run.blank(args.x.dtype, {s.rows, s.channels});
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        const std::int64_t count = starts[i + 1] - starts[i];
        CausalConvArgs alone = args;
        alone.x = args.x.rows(starts[i], count);
        alone.documentFrom = zeros.rows(0, count);
        alone.out = out.rows(starts[i], count);
        run.call(run.ops().causalConv(alone, run.stream()));
    }
    run.expectSame("out, alone", args.out, out);
}

void causalConv(CaseRun& run, DType type, const ConvShape& s, bool silu)
{
    const ConvInputs in = convInputs(run, type, s);
    const CausalConvArgs args = convArgs(run, type, s, in, silu);
    run.call(run.ops().causalConv(args, run.stream()));
    Values want, tolerance;
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t ch = 0; ch < s.channels; ++ch) {
            const ConvSum sum = convSum(s, in, t, ch);
            want.push_back(silu ? sum.value * sigmoidOf(sum.value) : sum.value);
            // The slope of x sigmoid(x) is at most 1.1; a sigmoid and a product.
            tolerance.push_back(1.1 * convUnits(s) * sum.size +
                                (10.0 * kU + 1.01 * unitOf(type)) * std::abs(want.back()));
        }
    run.expect("out", args.out, want, tolerance);
    convAlone(run, s, args);
}

// Rows [0, 2), [2, 3), [3, rows) in calls of their own: the bits of one call, and its history.
void convInParts(CaseRun& run, DType type, const ConvShape& s)
{
    const ConvInputs in = convInputs(run, type, s);
    CausalConvArgs args = convArgs(run, type, s, in, true);
    args.history = run.blank(type, {s.taps - 1, s.channels});
    run.call(run.ops().causalConv(args, run.stream()));
    const TensorView out = run.blank(type, {s.rows, s.channels});
    const TensorView history = run.blank(type, {s.taps - 1, s.channels});
    const std::int64_t starts[] = {
        0, std::min<std::int64_t>(2, s.rows), std::min<std::int64_t>(3, s.rows), s.rows};
    for (std::size_t i = 0; i < 3; ++i) {
        const std::int64_t count = starts[i + 1] - starts[i];
        Values from;
        for (std::int64_t t = starts[i]; t < starts[i + 1]; ++t)
            from.push_back(std::max(0.0, in.from(t) - static_cast<double>(starts[i])));
        const bool continues =
            i > 0 && count > 0 && in.from(starts[i]) < static_cast<double>(starts[i]);
        run.call(run.ops().causalConv(
            {in.x.view.rows(starts[i], count), in.weight.view,
                run.given(DType::I32, {count}, from).view, out.rows(starts[i], count), history,
                s.firstColumn, true, continues},
            run.stream()));
    }
    run.expectSame("out, in parts", args.out, out);
    run.expectSame("history, in parts", args.history, history);
    Values want;
    for (std::int64_t t = s.rows - s.taps + 1; t < s.rows; ++t)
        for (std::int64_t ch = 0; ch < s.channels; ++ch)
            want.push_back(static_cast<double>(t) >= in.from(s.rows - 1)
                               ? in.x(t * s.cols + s.firstColumn + ch)
                               : 0.0);
    run.expectExactly("history", args.history, want);
}

// The gradient of c[t] of one channel, and its error.
ConvSum sumGradient(const ConvShape& s, const ConvInputs& in, const Input& gradOut, std::int64_t t,
    std::int64_t ch, bool silu)
{
    const double grad = gradOut(t * s.channels + ch);
    if (!silu)
        return {grad, 0.0};
    const ConvSum sum = convSum(s, in, t, ch);
    const double sg = sigmoidOf(sum.value);
    // The second derivative of x sigmoid(x) is at most 0.5. As in the case of swigluBackward.
    return {grad * sg * (1.0 + sum.value * (1.0 - sg)),
        std::abs(grad) *
            (0.55 * convUnits(s) * sum.size + 16.0 * kU * sg * (1.0 + std::abs(sum.value)))};
}

struct ConvGradients {
    Values x, xTolerance, weight, weightTolerance;
};

ConvGradients convGradients(
    const ConvShape& s, DType type, const ConvInputs& in, const Input& gradOut, bool silu)
{
    const std::size_t weights = static_cast<std::size_t>(s.channels * s.taps);
    ConvGradients g{Values(static_cast<std::size_t>(s.rows * s.channels), 0.0), {},
        Values(weights, 0.0), Values(weights, 0.0)};
    g.xTolerance = g.x;
    const double sumUnits = (static_cast<double>(s.rows) + 4.0) * kU;
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t ch = 0; ch < s.channels; ++ch) {
            const ConvSum grad = sumGradient(s, in, gradOut, t, ch, silu);
            for (std::int64_t j = 0; j < s.taps; ++j) {
                const std::int64_t at = t - s.taps + 1 + j;
                if (static_cast<double>(at) < in.from(t))
                    continue;
                const auto tap = static_cast<std::size_t>(ch * s.taps + j);
                const auto place = static_cast<std::size_t>(at * s.channels + ch);
                const double weight = in.weight.values[tap];
                const double x = in.x(at * s.cols + s.firstColumn + ch);
                g.x[place] += weight * grad.value;
                g.xTolerance[place] +=
                    std::abs(weight) * (grad.size + convUnits(s) * std::abs(grad.value));
                g.weight[tap] += x * grad.value;
                g.weightTolerance[tap] +=
                    std::abs(x) * (grad.size + sumUnits * std::abs(grad.value));
            }
        }
    for (std::size_t i = 0; i < g.x.size(); ++i)
        g.xTolerance[i] += 1.01 * unitOf(type) * std::abs(g.x[i]);
    return g;
}

struct ConvBackward {
    Input gradOut, before;
    CausalConvBackwardArgs args;
};

ConvBackward convBackward(CaseRun& run, DType type, const ConvShape& s, const ConvInputs& in)
{
    ConvBackward b{
        run.random(type, {s.rows, s.channels}), run.random(DType::F32, {s.channels, s.taps}), {}};
    // Columns beside the window keep what they hold.
    const Values held(static_cast<std::size_t>(s.rows * s.cols), 3.0);
    b.args = {in.x.view, in.weight.view, in.from.view, b.gradOut.view,
        run.given(type, {s.rows, s.cols}, held).view, b.before.view,
        run.blank(DType::F32, {recurrentBlocks(s.rows), s.channels * s.taps}), s.firstColumn, true,
        false};
    return b;
}

void causalConvBackward(CaseRun& run, DType type, const ConvShape& s, bool silu, bool accumulate)
{
    const ConvInputs in = convInputs(run, type, s);
    ConvBackward b = convBackward(run, type, s, in);
    b.args.silu = silu;
    b.args.accumulate = accumulate;
    run.call(run.ops().causalConvBackward(b.args, run.stream()));
    ConvGradients want = convGradients(s, type, in, b.gradOut, silu);
    Values gradX(static_cast<std::size_t>(s.rows * s.cols), 3.0);
    Values tolerance(gradX.size(), 0.0);
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t ch = 0; ch < s.channels; ++ch) {
            const auto at = static_cast<std::size_t>(t * s.cols + s.firstColumn + ch);
            gradX[at] = want.x[static_cast<std::size_t>(t * s.channels + ch)];
            tolerance[at] = want.xTolerance[static_cast<std::size_t>(t * s.channels + ch)];
        }
    run.expect("gradX", b.args.gradX, gradX, tolerance);
    for (std::size_t i = 0; i < want.weight.size(); ++i) {
        want.weight[i] += accumulate ? b.before.values[i] : 0.0;
        want.weightTolerance[i] += 2.0 * kU * std::abs(want.weight[i]);
    }
    run.expect("gradWeight", b.args.gradWeight, want.weight, want.weightTolerance);
}

// Without a gradient of the weight, and with one that is rounded: the bits beside an F32 one.
void convFrozenAndRounded(CaseRun& run, DType type, const ConvShape& s)
{
    const ConvInputs in = convInputs(run, type, s);
    ConvBackward b = convBackward(run, type, s, in);
    run.call(run.ops().causalConvBackward(b.args, run.stream()));
    const TensorView gradX = b.args.gradX;
    const TensorView sum = b.args.gradWeight;
    b.args.gradX =
        run.given(type, {s.rows, s.cols}, Values(static_cast<std::size_t>(s.rows * s.cols), 3.0))
            .view;
    b.args.gradWeight = {};
    run.call(run.ops().causalConvBackward(b.args, run.stream()));
    run.expectSame("gradX, frozen", b.args.gradX, gradX);
    if (type != DType::BF16)
        return;
    b.args.gradWeight = run.blank(type, {s.channels, s.taps});
    run.call(run.ops().causalConvBackward(b.args, run.stream()));
    const TensorView flat = vectorView(b.args.gradWeight.data, type, s.channels * s.taps);
    run.expectSame("gradWeight, rounded", flat, run.rounded(sum));
}

void addConvShape(Table& table, DType type, const ConvShape& s)
{
    const auto name = [&](const char* op, const std::string& more) {
        return fmt::format("{} {} ({}, {} of {} channels, {} taps){}{}", op, typeName(type), s.rows,
            s.channels, s.cols, s.taps, lengthsName(s.lengths), more);
    };
    for (const bool silu : {false, true}) {
        table.push_back({"causalConv", name("causalConv", silu ? " silu" : ""),
            [=](CaseRun& run) { causalConv(run, type, s, silu); }});
        table.push_back(
            {"causalConvBackward", name("causalConvBackward", silu ? " silu, accumulate" : ""),
                [=](CaseRun& run) { causalConvBackward(run, type, s, silu, silu); }});
    }
    if (s.rows > 0)
        table.push_back({"causalConv", name("causalConv", " in parts"),
            [=](CaseRun& run) { convInParts(run, type, s); }});
    table.push_back({"causalConvBackward", name("causalConvBackward", " frozen"),
        [=](CaseRun& run) { convFrozenAndRounded(run, type, s); }});
}

} // namespace

void addConvCases(Table& table)
{
    Table lines;
    for (const DType type : kBothTypes)
        for (const ConvShape& s : kConvShapes)
            addConvShape(lines, type, s);
    table.insert(table.end(), lines.begin(), lines.end());
    addLateStarts(table, lines);
}

} // namespace mr::conformance
