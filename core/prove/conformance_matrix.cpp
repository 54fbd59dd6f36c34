// linear, linearBackwardInput, linearBackwardWeight against double precision.

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

} // namespace

void addMatrixCases(Table& table)
{
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
