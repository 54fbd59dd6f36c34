// linear, linearBackwardInput, linearBackwardWeight, windowProduct against double precision.

#include "core/prove/conformance_case.h"
#include "core/prove/conformance_dot.h"

#include <fmt/format.h>

namespace mr::conformance {

namespace {

struct ProductShape {
    std::int64_t tokens, in, out;
};

// One row, one column, one past a tile, more than one tile each way, none at all.
constexpr ProductShape kShapes[] = {{1, 1, 1}, {1, 64, 172}, {3, 5, 7}, {65, 33, 7}, {64, 64, 64},
    {70, 66, 257}, {0, 8, 8}, {3, 0, 5}, {200, 300, 70}};

std::string describe(const char* op, DType type, const ProductShape& s, const char* more)
{
    return fmt::format("{} {} ({}, {}, {}){}", op, typeName(type), s.tokens, s.in, s.out, more);
}

void linear(CaseRun& run, DType type, DType outType, const ProductShape& s, bool bias)
{
    const Input x = run.random(type, {s.tokens, s.in});
    const Input weight = run.random(type, {s.out, s.in});
    const Input b = bias ? run.random(type, {s.out}) : Input{};
    const LinearArgs args{x.view, weight.view, b.view, run.blank(outType, {s.tokens, s.out})};
    run.call(run.ops().linear(args, run.stream()));
    Values want;
    Values tolerance;
    for (std::int64_t t = 0; t < s.tokens; ++t)
        for (std::int64_t o = 0; o < s.out; ++o) {
            Dot dot;
            for (std::int64_t i = 0; i < s.in; ++i)
                dot.add(x(t * s.in + i) * weight(o * s.in + i));
            if (bias)
                dot.add(b(o));
            want.push_back(dot.sum);
            tolerance.push_back(dot.tolerance(s.in, outType));
        }
    run.expect("out", args.out, want, tolerance);
}

void linearBackwardInput(CaseRun& run, DType type, const ProductShape& s)
{
    const Input gradOut = run.random(type, {s.tokens, s.out});
    const Input weight = run.random(type, {s.out, s.in});
    const LinearBackwardInputArgs args{
        gradOut.view, weight.view, run.blank(type, {s.tokens, s.in})};
    run.call(run.ops().linearBackwardInput(args, run.stream()));
    Values want;
    Values tolerance;
    for (std::int64_t t = 0; t < s.tokens; ++t)
        for (std::int64_t i = 0; i < s.in; ++i) {
            Dot dot;
            for (std::int64_t o = 0; o < s.out; ++o)
                dot.add(gradOut(t * s.out + o) * weight(o * s.in + i));
            want.push_back(dot.sum);
            tolerance.push_back(dot.tolerance(s.out, type));
        }
    run.expect("gradX", args.gradX, want, tolerance);
}

void expectWeightGradient(CaseRun& run, const LinearBackwardWeightArgs& args, const ProductShape& s,
    const Input& gradOut, const Input& x, const Input& before)
{
    Values want;
    Values tolerance;
    for (std::int64_t o = 0; o < s.out; ++o)
        for (std::int64_t i = 0; i < s.in; ++i) {
            Dot dot;
            for (std::int64_t t = 0; t < s.tokens; ++t)
                dot.add(gradOut(t * s.out + o) * x(t * s.in + i));
            if (args.accumulate)
                dot.add(before(o * s.in + i));
            want.push_back(dot.sum);
            tolerance.push_back(dot.tolerance(s.tokens, args.gradWeight.dtype));
        }
    run.expect("gradWeight", args.gradWeight, want, tolerance);
}

// `to`: the type of the gradients.
void linearBackwardWeight(
    CaseRun& run, DType type, DType to, const ProductShape& s, bool accumulate)
{
    const Input gradOut = run.random(type, {s.tokens, s.out});
    const Input x = run.random(type, {s.tokens, s.in});
    const Input before = run.random(DType::F32, {s.out, s.in});
    const Input bias = run.random(DType::F32, {s.out});
    LinearBackwardWeightArgs args;
    args.gradOut = gradOut.view;
    args.x = x.view;
    args.gradWeight = to == DType::F32 ? before.view : run.blank(to, {s.out, s.in});
    args.gradBias = to == DType::F32 ? bias.view : run.blank(to, {s.out});
    args.accumulate = accumulate;
    run.call(run.ops().linearBackwardWeight(args, run.stream()));
    expectWeightGradient(run, args, s, gradOut, x, before);
    Values want;
    Values tolerance;
    for (std::int64_t o = 0; o < s.out; ++o) {
        Dot dot;
        for (std::int64_t t = 0; t < s.tokens; ++t)
            dot.add(gradOut(t * s.out + o));
        if (accumulate)
            dot.add(bias(o));
        want.push_back(dot.sum);
        tolerance.push_back(dot.tolerance(s.tokens, to));
    }
    run.expect("gradBias", args.gradBias, want, tolerance);
}

// Adding on the fly, and in scratch, gives the bits of the product and one addition. So a policy
// that adds elsewhere gives the same weights.
void adding(CaseRun& run, DType type, const ProductShape& s)
{
    const Input gradOut = run.random(type, {s.tokens, s.out});
    const Input x = run.random(type, {s.tokens, s.in});
    const Input before = run.random(DType::F32, {s.out, s.in});
    LinearBackwardWeightArgs args;
    args.gradOut = gradOut.view;
    args.x = x.view;
    args.gradWeight = run.blank(DType::F32, {s.out, s.in});
    const TensorView want = run.blank(DType::F32, {s.out, s.in});
    run.call(run.ops().linearBackwardWeight(args, run.stream()));
    run.call(run.ops().add({before.view, args.gradWeight, want}, run.stream()));
    args.gradWeight = run.given(DType::F32, {s.out, s.in}, before.values).view;
    args.accumulate = true;
    run.call(run.ops().linearBackwardWeight(args, run.stream()));
    run.expectSame("gradWeight, added on the fly", args.gradWeight, want);
    args.gradWeight = before.view;
    args.product = run.blank(DType::F32, {s.out, s.in});
    run.call(run.ops().linearBackwardWeight(args, run.stream()));
    run.expectSame("gradWeight, added in scratch", args.gradWeight, want);
}

// The gradient of a bias is that in F32, rounded.
void roundingTheBias(CaseRun& run, const ProductShape& s)
{
    constexpr DType kType = DType::BF16;
    const Input gradOut = run.random(kType, {s.tokens, s.out});
    const Input x = run.random(kType, {s.tokens, s.in});
    LinearBackwardWeightArgs args;
    args.gradOut = gradOut.view;
    args.x = x.view;
    args.gradWeight = run.blank(DType::F32, {s.out, s.in});
    args.gradBias = run.blank(DType::F32, {s.out});
    run.call(run.ops().linearBackwardWeight(args, run.stream()));
    const TensorView want = run.rounded(args.gradBias);
    args.gradWeight = run.blank(kType, {s.out, s.in});
    args.gradBias = run.blank(kType, {s.out});
    run.call(run.ops().linearBackwardWeight(args, run.stream()));
    run.expectSame("gradBias", args.gradBias, want);
}

// A product of windows: (rows, depth) (depth, cols), with so many columns before and behind each.
struct WindowShape {
    std::int64_t rows, depth, cols, before, behind;
};

constexpr WindowShape kWindowShapes[] = {
    {1, 1, 1, 0, 0}, {70, 16, 65, 8, 24}, {33, 70, 16, 16, 0}, {5, 3, 7, 1, 2}};

struct WindowCase {
    DType type{};
    DType outType{};
    bool transposeA = false;
    bool transposeB = false;
    bool accumulate = false;
    WindowShape shape{};
};

// Element (row, col) of a window, or of the window turned over.
double inWindow(
    const Input& all, const ColumnWindow& window, bool turned, std::int64_t row, std::int64_t col)
{
    const std::int64_t r = turned ? col : row;
    const std::int64_t c = turned ? row : col;
    return all(r * window.matrix.dims[1] + window.first + c);
}

void windowProduct(CaseRun& run, const WindowCase& c)
{
    const WindowShape& s = c.shape;
    const auto windowOf = [&](const Input& all, std::int64_t count) {
        return ColumnWindow{all.view, s.before, count};
    };
    const auto matrix = [&](DType type, std::int64_t down, std::int64_t across) {
        return run.random(type, {down, s.before + across + s.behind});
    };
    const Input a =
        c.transposeA ? matrix(c.type, s.depth, s.rows) : matrix(c.type, s.rows, s.depth);
    const Input b =
        c.transposeB ? matrix(c.type, s.cols, s.depth) : matrix(c.type, s.depth, s.cols);
    const Input out = matrix(c.outType, s.rows, s.cols);
    WindowProductArgs args;
    args.a = windowOf(a, c.transposeA ? s.rows : s.depth);
    args.b = windowOf(b, c.transposeB ? s.depth : s.cols);
    args.out = windowOf(out, s.cols);
    args.transposeA = c.transposeA;
    args.transposeB = c.transposeB;
    args.scale = 1.5F;
    args.accumulate = c.accumulate;
    run.call(run.ops().windowProduct(args, run.stream()));
    Values want = out.values; // the other columns stay
    Values tolerance(want.size(), 0.0);
    for (std::int64_t row = 0; row < s.rows; ++row)
        for (std::int64_t col = 0; col < s.cols; ++col) {
            Dot dot;
            for (std::int64_t k = 0; k < s.depth; ++k)
                dot.add(1.5 * inWindow(a, args.a, c.transposeA, row, k) *
                        inWindow(b, args.b, c.transposeB, k, col));
            const auto at =
                static_cast<std::size_t>(row * args.out.matrix.dims[1] + args.out.first + col);
            if (c.accumulate)
                dot.add(want[at]);
            want[at] = dot.sum;
            tolerance[at] = dot.tolerance(s.depth + 1, c.outType); // the scale rounds, too
        }
    run.expect("out", args.out.matrix, want, tolerance);
}

void addWindowCases(Table& table)
{
    for (const DType type : kBothTypes)
        for (const WindowShape& shape : kWindowShapes)
            for (int way = 0; way < 4; ++way)
                for (const bool accumulate : {false, true})
                    for (const bool isWide : {false, true}) {
                        if (isWide && type == DType::F32)
                            continue;
                        const DType outType = isWide ? DType::F32 : type;
                        const WindowCase c{
                            type, outType, way % 2 != 0, way >= 2, accumulate, shape};
                        table.push_back({"windowProduct",
                            fmt::format("windowProduct {} ({}, {}, {}){}{}{}{}", typeName(type),
                                shape.rows, shape.depth, shape.cols, c.transposeA ? " a^T" : "",
                                c.transposeB ? " b^T" : "", isWide ? " to f32" : "",
                                accumulate ? " adds" : ""),
                            [=](CaseRun& run) { windowProduct(run, c); }});
                    }
}

} // namespace

void addMatrixCases(Table& table)
{
    addWindowCases(table);
    for (const DType type : kBothTypes)
        for (const ProductShape& s : kShapes) {
            for (const bool bias : {false, true})
                table.push_back({"linear", describe("linear", type, s, bias ? " bias" : ""),
                    [=](CaseRun& run) { linear(run, type, type, s, bias); }});
            if (type == DType::BF16)
                for (const bool bias : {false, true})
                    table.push_back(
                        {"linear", describe("linear", type, s, bias ? " to f32, bias" : " to f32"),
                            [=](CaseRun& run) { linear(run, type, DType::F32, s, bias); }});
            table.push_back({"linearBackwardInput", describe("linearBackwardInput", type, s, ""),
                [=](CaseRun& run) { linearBackwardInput(run, type, s); }});
            for (const bool accumulate : {false, true})
                table.push_back({"linearBackwardWeight",
                    describe("linearBackwardWeight", type, s, accumulate ? " accumulate" : ""),
                    [=](CaseRun& run) {
                        linearBackwardWeight(run, type, DType::F32, s, accumulate);
                    }});
            if (type == DType::BF16) {
                table.push_back(
                    {"linearBackwardWeight", describe("linearBackwardWeight", type, s, " rounded"),
                        [=](CaseRun& run) { linearBackwardWeight(run, type, type, s, false); }});
                table.push_back({"linearBackwardWeight",
                    describe("linearBackwardWeight", type, s, " bias rounded once"),
                    [=](CaseRun& run) { roundingTheBias(run, s); }});
            }
            table.push_back(
                {"linearBackwardWeight", describe("linearBackwardWeight", type, s, " adding"),
                    [=](CaseRun& run) { adding(run, type, s); }});
        }
}

} // namespace mr::conformance
