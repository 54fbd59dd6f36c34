// Products at the sizes of models against double precision, at sampled places. Libraries choose
// other algorithms there than for the small shapes of conformance_matrix.cpp.
//
// Tolerance  As in conformance_dot.h.
// Sources    The shapes are those of published configs for 2,048 tokens: Qwen2.5 1.5B (hidden size
//            1,536, 8,960 in the MLP, 2,048 columns of q, k and v) and a chunk of its head.

#include "core/prove/conformance_case.h"
#include "core/prove/conformance_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace mr::conformance {

namespace {

struct ModelProduct {
    std::int64_t tokens, in, out;
};

constexpr std::array kProducts = {ModelProduct{2048, 1536, 8960}, ModelProduct{2048, 8960, 1536},
    ModelProduct{2048, 1536, 2048}, ModelProduct{416, 1536, 19'008}};

constexpr std::int64_t kSamples = 512;

// Places in order that reach every part of `count` elements: steps of an odd number.
std::vector<std::int64_t> samplesOf(std::int64_t count)
{
    std::vector<std::int64_t> places;
    const std::int64_t step = std::max<std::int64_t>(1, count / kSamples) | 1;
    for (std::int64_t at = 0; at < count; at += step)
        places.push_back(at);
    places.push_back(count - 1);
    return places;
}

// The sum of `depth` products.
template <typename Product>
void addSample(std::int64_t depth, DType out, Product product, Values& want, Values& tolerance)
{
    Dot dot;
    for (std::int64_t i = 0; i < depth; ++i)
        dot.add(product(i));
    want.push_back(dot.sum);
    tolerance.push_back(dot.tolerance(depth, out));
}

void modelLinear(CaseRun& run, DType type, const ModelProduct& s)
{
    const Input x = run.repeated(type, {s.tokens, s.in});
    const Input weight = run.repeated(type, {s.out, s.in});
    const LinearArgs args{x.view, weight.view, {}, run.blank(type, {s.tokens, s.out})};
    run.call(run.ops().linear(args, run.stream()));
    const std::vector<std::int64_t> places = samplesOf(s.tokens * s.out);
    Values want;
    Values tolerance;
    for (const std::int64_t at : places)
        addSample(
            s.in, type,
            [&](std::int64_t i) {
                return x(at / s.out * s.in + i) * weight(at % s.out * s.in + i);
            },
            want, tolerance);
    run.expectAt("out", args.out, places, want, tolerance);
}

void modelBackwardInput(CaseRun& run, DType type, const ModelProduct& s)
{
    const Input gradOut = run.repeated(type, {s.tokens, s.out});
    const Input weight = run.repeated(type, {s.out, s.in});
    const LinearBackwardInputArgs args{
        gradOut.view, weight.view, run.blank(type, {s.tokens, s.in})};
    run.call(run.ops().linearBackwardInput(args, run.stream()));
    const std::vector<std::int64_t> places = samplesOf(s.tokens * s.in);
    Values want;
    Values tolerance;
    for (const std::int64_t at : places)
        addSample(
            s.out, type,
            [&](std::int64_t o) {
                return gradOut(at / s.in * s.out + o) * weight(o * s.in + at % s.in);
            },
            want, tolerance);
    run.expectAt("gradX", args.gradX, places, want, tolerance);
}

// The product and one addition, and adding on the fly: equal bits.
void modelBackwardWeight(CaseRun& run, DType type, const ModelProduct& s)
{
    const Input gradOut = run.repeated(type, {s.tokens, s.out});
    const Input x = run.repeated(type, {s.tokens, s.in});
    const Input before = run.repeated(DType::F32, {s.out, s.in});
    LinearBackwardWeightArgs args;
    args.gradOut = gradOut.view;
    args.x = x.view;
    args.gradWeight = run.blank(DType::F32, {s.out, s.in});
    const TensorView apart = run.blank(DType::F32, {s.out, s.in});
    run.call(run.ops().linearBackwardWeight(args, run.stream()));
    run.call(run.ops().add({before.view, args.gradWeight, apart}, run.stream()));
    const std::vector<std::int64_t> places = samplesOf(s.out * s.in);
    Values want;
    Values tolerance;
    for (const std::int64_t at : places)
        addSample(
            s.tokens, DType::F32,
            [&](std::int64_t t) {
                return gradOut(t * s.out + at / s.in) * x(t * s.in + at % s.in);
            },
            want, tolerance);
    run.expectAt("gradWeight", args.gradWeight, places, want, tolerance);
    args.gradWeight = before.view;
    args.accumulate = true;
    run.call(run.ops().linearBackwardWeight(args, run.stream()));
    run.expectSame("gradWeight, added on the fly", args.gradWeight, apart);
}

} // namespace

void addModelSizeProductCases(Table& table)
{
    for (const DType type : kBothTypes)
        for (const ModelProduct& s : kProducts) {
            const auto add = [&](const char* op, auto function) {
                table.push_back({op,
                    fmt::format(
                        "{} {} ({}, {}, {}) of a model", op, typeName(type), s.tokens, s.in, s.out),
                    [=](CaseRun& run) { function(run, type, s); }});
            };
            add("linear", modelLinear);
            add("linearBackwardInput", modelBackwardInput);
            add("linearBackwardWeight", modelBackwardWeight);
        }
}

} // namespace mr::conformance
