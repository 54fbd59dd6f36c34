// headNormRope and its backward: against double precision, and bit for bit against the ops they are
// made of (gatherColumns, rmsNorm, scatterColumns, rope).
//
// Tolerances count roundings of the formulas in ops.h. Each is written where it is used.

#include "core/prove/conformance_case.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace mr::conformance {

namespace {

struct HeadShape {
    std::int64_t tokens;
    int heads, kvHeads, headDim, rotaryDim;
    int firstHead = 0;

    // Without heads of keys, one more head stays behind those that are normed.
    std::int64_t columns() const
    {
        const int others = kvHeads > 0 ? 2 * kvHeads : 1;
        return (std::int64_t{firstHead} + heads + others) * headDim;
    }
};

// One element; odd sizes; heads of models; elements that do not rotate; halves that no pack
// divides; rows longer than a warp's packs, and than a block of them; no token; heads that do not
// turn; heads of one side, whole rows of q and k among them.
constexpr HeadShape kHeadShapes[] = {{1, 1, 1, 2, 2}, {7, 3, 3, 6, 4}, {33, 4, 2, 33, 32},
    {65, 4, 2, 64, 64}, {23, 6, 2, 128, 128}, {9, 2, 1, 256, 256}, {19, 4, 1, 80, 80},
    {12, 2, 1, 128, 32}, {12, 2, 2, 96, 24}, {5, 2, 1, 320, 320}, {3, 2, 1, 640, 640},
    {0, 4, 2, 64, 64}, {21, 4, 2, 64, 0}, {6, 2, 1, 7, 0}, {13, 3, 0, 16, 16, 2},
    {70, 1, 0, 512, 0}, {67, 1, 0, 256, 0, 2}, {9, 1, 0, 33, 0, 1}, {2, 1, 0, 4096, 0}};

constexpr std::int64_t kAnglePositions = 50;

// q or k of a case.
struct Side {
    std::int64_t first = 0; // head within a packed row
    std::int64_t heads = 0;
    Input weight;
    HeadNorm norm;

    const Side& side() const { return *this; }

    // Element `at` of head `head` of a token, in a packed row and among the projected.
    std::int64_t packed(const HeadShape& s, std::int64_t row, std::int64_t at) const
    {
        return row / heads * s.columns() + (first + row % heads) * s.headDim + at;
    }
};

double gainOffset(NormGain gain)
{
    return gain == NormGain::OnePlusWeight ? 1.0 : 0.0;
}

Side sideOf(CaseRun& run, DType type, const HeadShape& s, std::int64_t first, std::int64_t heads)
{
    if (heads == 0)
        return {};
    Side side{first, heads, run.random(type, {s.headDim}), {}};
    side.norm = {run.blank(type, {s.tokens, heads * s.headDim}),
        run.blank(DType::F32, {s.tokens, heads}), side.weight.view};
    return side;
}

struct Angles {
    Input positions, cosine, sine;
};

Angles anglesOf(CaseRun& run, const HeadShape& s)
{
    if (s.rotaryDim == 0)
        return {};
    Values positions;
    for (std::int64_t t = 0; t < s.tokens; ++t)
        positions.push_back(static_cast<double>((t * 3) % kAnglePositions));
    return {run.given(DType::I32, {s.tokens}, positions),
        run.random(DType::F32, {kAnglePositions, s.rotaryDim / 2}),
        run.random(DType::F32, {kAnglePositions, s.rotaryDim / 2})};
}

// One head, rotated: values, and the sizes of the terms that each is the sum of.
struct Turned {
    Values value, size;
};

Turned turned(const HeadShape& s, const Angles& angles, std::int64_t token, const Values& head,
    const Values& size, bool inverse)
{
    Turned out{head, size};
    const std::int64_t half = s.rotaryDim / 2;
    for (std::int64_t i = 0; i < half; ++i) {
        const std::int64_t entry = static_cast<std::int64_t>(angles.positions(token)) * half + i;
        const double c = angles.cosine(entry);
        const double n = inverse ? -angles.sine(entry) : angles.sine(entry);
        const auto low = static_cast<std::size_t>(i);
        const auto high = static_cast<std::size_t>(half + i);
        out.value[low] = head[low] * c - head[high] * n;
        out.value[high] = head[high] * c + head[low] * n;
        out.size[low] = std::abs(size[low] * c) + std::abs(size[high] * n);
        out.size[high] = std::abs(size[high] * c) + std::abs(size[low] * n);
    }
    return out;
}

// The heads of a side by the ops of one step each. Returns its columns apart from the packed rows.
TensorView gathered(CaseRun& run, const HeadShape& s, const Side& side, const TensorView& packed,
    TensorView& columns)
{
    Values picked(static_cast<std::size_t>(side.heads * s.headDim));
    std::iota(picked.begin(), picked.end(), static_cast<double>(side.first * s.headDim));
    columns = run.given(DType::I32, {side.heads * s.headDim}, picked).view;
    const TensorView apart = run.blank(packed.dtype, {s.tokens, side.heads * s.headDim});
    run.call(run.ops().gatherColumns({packed, columns, apart}, run.stream()));
    return apart;
}

TensorView asRows(const TensorView& heads, const HeadShape& s)
{
    return matrixView(heads.data, heads.dtype, heads.count() / s.headDim, s.headDim);
}

void expectForward(CaseRun& run, DType type, const HeadShape& s, const HeadNormRopeArgs& args,
    const Input& qkv, const Side& side, const Angles& angles, Values& want, Values& tolerance)
{
    // As in the case of rmsNorm: the mean of n squares, eps, root and quotient; then the products.
    const double relative = (0.5 * static_cast<double>(s.headDim) + 6.0) * kU;
    const double normRelative = relative + 2.0 * kU + 2.01 * unitOf(type);
    Values projected, rstd, rstdTolerance;
    for (std::int64_t row = 0; row < s.tokens * side.heads; ++row) {
        double squares = 0.0;
        for (std::int64_t i = 0; i < s.headDim; ++i) {
            projected.push_back(qkv(side.packed(s, row, i)));
            squares += projected.back() * projected.back();
        }
        rstd.push_back(1.0 / std::sqrt(squares / s.headDim + static_cast<double>(args.eps)));
        rstdTolerance.push_back(relative * rstd.back());
        Values normed;
        for (std::int64_t i = 0; i < s.headDim; ++i)
            normed.push_back((side.weight(i) + gainOffset(args.gain)) * rstd.back() *
                             qkv(side.packed(s, row, i)));
        const Turned head = turned(s, angles, row / side.heads, normed, normed, false);
        for (std::int64_t i = 0; i < s.headDim; ++i) {
            const auto at = static_cast<std::size_t>(side.packed(s, row, i));
            const double size = std::abs(head.size[static_cast<std::size_t>(i)]);
            want[at] = head.value[static_cast<std::size_t>(i)];
            // Two products and their sum, of normed values with an error, then the store.
            tolerance[at] =
                1.01 * (normRelative + 2.0 * kU) * size + 1.01 * unitOf(type) * std::abs(want[at]);
        }
    }
    run.expectExactly("projected", side.norm.projected, projected);
    run.expect("rstd", side.norm.rstd, rstd, rstdTolerance);
}

// The forward pass of a side in three ops; its rope is one for both sides.
void normApart(CaseRun& run, const HeadShape& s, const Side& side, const HeadNormRopeArgs& args,
    const TensorView& packed)
{
    TensorView columns;
    const TensorView apart = gathered(run, s, side, packed, columns);
    const TensorView normed = run.blank(packed.dtype, {s.tokens, side.heads * s.headDim});
    const TensorView rstd = run.blank(DType::F32, {s.tokens * side.heads});
    run.call(run.ops().rmsNorm(
        {asRows(apart, s), {}, side.norm.weight, {}, asRows(normed, s), rstd, args.eps, args.gain},
        run.stream()));
    run.call(run.ops().scatterColumns({normed, columns, packed}, run.stream()));
    run.expectSame("projected, apart", side.norm.projected, apart);
    run.expectSame("rstd, apart", side.norm.rstd, rstd);
}

// The rotation of both sides, by its own op.
void turnApart(
    CaseRun& run, const HeadShape& s, const Angles& angles, const TensorView& packed, bool inverse)
{
    if (s.rotaryDim > 0)
        run.call(run.ops().rope({packed, angles.positions.view, angles.cosine.view,
                                    angles.sine.view, s.heads + s.kvHeads, s.headDim, s.rotaryDim,
                                    inverse, RopePairs::Halves, s.firstHead},
            run.stream()));
}

// Queries, and keys where there are any.
template <typename T>
std::vector<const T*> sidesOf(const T& queries, const T& keys)
{
    std::vector<const T*> sides{&queries};
    if (keys.side().heads > 0)
        sides.push_back(&keys);
    return sides;
}

void headNormRope(CaseRun& run, DType type, const HeadShape& s, NormGain gain)
{
    const Input qkv = run.random(type, {s.tokens, s.columns()});
    const TensorView copy = run.given(type, {s.tokens, s.columns()}, qkv.values).view;
    const Side queries = sideOf(run, type, s, s.firstHead, s.heads);
    const Side keys = sideOf(run, type, s, s.heads, s.kvHeads);
    const Angles angles = anglesOf(run, s);
    const HeadNormRopeArgs args{qkv.view, queries.norm, keys.norm, angles.positions.view,
        angles.cosine.view, angles.sine.view, s.heads, s.kvHeads, s.headDim, s.rotaryDim, 1e-5F,
        gain, s.firstHead};
    run.call(run.ops().headNormRope(args, run.stream()));
    Values want = qkv.values;
    Values tolerance(want.size(), 0.0);
    for (const Side* side : sidesOf(queries, keys))
        expectForward(run, type, s, args, qkv, *side, angles, want, tolerance);
    run.expect("qkv", args.qkv, want, tolerance);
    for (const Side* side : sidesOf(queries, keys))
        normApart(run, s, *side, args, copy);
    turnApart(run, s, angles, copy, false);
    run.expectSame("qkv, op by op", args.qkv, copy);
}

// The tensors of a side that backward reads, and its weight's gradient.
struct BackwardSide {
    Side own;
    Input projected, rstd, before;

    const Side& side() const { return own; }
};

BackwardSide backwardSideOf(
    CaseRun& run, DType type, const HeadShape& s, std::int64_t first, std::int64_t heads)
{
    BackwardSide b{sideOf(run, type, s, first, heads), {}, {}, {}};
    if (heads == 0)
        return b;
    b.projected = run.random(type, {s.tokens, heads * s.headDim});
    Values rstd;
    for (std::int64_t row = 0; row < s.tokens * heads; ++row)
        rstd.push_back(static_cast<double>(0.5F + 0.01F * static_cast<float>(row % 50)));
    b.rstd = run.given(DType::F32, {s.tokens, heads}, rstd);
    b.before = run.random(DType::F32, {s.headDim});
    b.own.norm.projected = b.projected.view;
    b.own.norm.rstd = b.rstd.view;
    return b;
}

// The gradient of one head before the norm, and the sizes of the terms of its elements.
Turned normGradient(
    const HeadShape& s, const BackwardSide& b, NormGain gain, std::int64_t row, const Turned& grad)
{
    const double rstd = b.rstd(row);
    Values scaled, scaledSize, normed;
    double mean = 0.0;
    double meanSize = 0.0;
    for (std::int64_t i = 0; i < s.headDim; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double factor = b.own.weight(i) + gainOffset(gain);
        normed.push_back(b.projected(row * s.headDim + i) * rstd);
        scaled.push_back(grad.value[at] * factor);
        scaledSize.push_back(std::abs(grad.size[at] * factor));
        mean += scaled[at] * normed[at] / s.headDim;
        meanSize += std::abs(scaledSize[at] * normed[at]) / s.headDim;
    }
    Turned out;
    for (std::size_t at = 0; at < normed.size(); ++at) {
        out.value.push_back(rstd * (scaled[at] - normed[at] * mean));
        out.size.push_back(rstd * (scaledSize[at] + std::abs(normed[at]) * meanSize));
    }
    return out;
}

// gradQkv of a side into `want`, and its weight's gradient.
void expectBackward(CaseRun& run, DType type, const HeadShape& s, const Input& gradQkv,
    const BackwardSide& b, const Angles& angles, const HeadNormRopeBackwardArgs& args, Values& want,
    Values& tolerance)
{
    // Rotating back: two products and their sum, then a store, relative to the terms' sizes.
    const double turn = 2.0 * kU + 1.01 * unitOf(type);
    // As in the case of rmsNormBackward, and the error of the gradient that the norm meets.
    const double relative = (static_cast<double>(s.headDim) + 12.0) * kU + turn;
    const std::int64_t rows = s.tokens * b.own.heads;
    const double sumRelative = (static_cast<double>(rows) + 4.0) * kU + turn +
                               (type == DType::BF16 ? kUBf16 * (1.0 + turn) : 0.0);
    Values sum(static_cast<std::size_t>(s.headDim), 0.0);
    Values sumTolerance = sum;
    for (std::int64_t row = 0; row < rows; ++row) {
        Values raw;
        for (std::int64_t i = 0; i < s.headDim; ++i)
            raw.push_back(gradQkv(b.own.packed(s, row, i)));
        const Turned grad = turned(s, angles, row / b.own.heads, raw, raw, true);
        const Turned gradX = normGradient(s, b, args.gain, row, grad);
        for (std::int64_t i = 0; i < s.headDim; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const auto place = static_cast<std::size_t>(b.own.packed(s, row, i));
            const double normed = b.projected(row * s.headDim + i) * b.rstd(row);
            sum[at] += grad.value[at] * normed;
            sumTolerance[at] += sumRelative * std::abs(grad.size[at] * normed);
            want[place] = gradX.value[at];
            tolerance[place] = relative * gradX.size[at] +
                               unitOf(type) * (std::abs(want[place]) + relative * gradX.size[at]);
        }
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += args.accumulate ? b.before.values[i] : 0.0;
        sumTolerance[i] += 2.0 * kU * std::abs(sum[i]);
    }
    run.expect("gradWeight", b.before.view, sum, sumTolerance);
}

// The backward pass of a side in three ops, after that of its rope.
void backwardApart(CaseRun& run, const HeadShape& s, const BackwardSide& b,
    const HeadNormRopeBackwardArgs& args, const TensorView& packed)
{
    TensorView columns;
    const TensorView gradOut = gathered(run, s, b.own, packed, columns);
    const TensorView gradX = run.blank(packed.dtype, {s.tokens, b.own.heads * s.headDim});
    const TensorView gradWeight = run.given(DType::F32, {s.headDim}, b.before.values).view;
    const std::int64_t blocks = headNormPartials(s.tokens, b.own.heads, 0);
    run.call(run.ops().rmsNormBackward(
        {asRows(gradOut, s), asRows(b.projected.view, s), b.own.norm.weight,
            vectorView(b.rstd.view.data, DType::F32, s.tokens * b.own.heads), {}, asRows(gradX, s),
            gradWeight, run.blank(DType::F32, {blocks, s.headDim}), args.accumulate, args.gain},
        run.stream()));
    run.call(run.ops().scatterColumns({gradX, columns, packed}, run.stream()));
    run.expectSame("gradWeight, op by op", b.before.view, gradWeight);
}

void headNormRopeBackward(
    CaseRun& run, DType type, const HeadShape& s, NormGain gain, bool accumulate)
{
    const Input gradQkv = run.random(type, {s.tokens, s.columns()});
    const TensorView copy = run.given(type, {s.tokens, s.columns()}, gradQkv.values).view;
    const BackwardSide queries = backwardSideOf(run, type, s, s.firstHead, s.heads);
    const BackwardSide keys = backwardSideOf(run, type, s, s.heads, s.kvHeads);
    const Angles angles = anglesOf(run, s);
    const HeadNormRopeBackwardArgs args{gradQkv.view, queries.own.norm, keys.own.norm,
        queries.before.view, keys.before.view,
        run.blank(DType::F32, {headNormPartials(s.tokens, s.heads, s.kvHeads), s.headDim}),
        angles.positions.view, angles.cosine.view, angles.sine.view, s.heads, s.kvHeads, s.headDim,
        s.rotaryDim, accumulate, gain, s.firstHead};
    run.call(run.ops().headNormRopeBackward(args, run.stream()));
    Values want = gradQkv.values;
    Values tolerance(want.size(), 0.0);
    for (const BackwardSide* b : sidesOf(queries, keys))
        expectBackward(run, type, s, gradQkv, *b, angles, args, want, tolerance);
    run.expect("gradQkv", args.gradQkv, want, tolerance);
    turnApart(run, s, angles, copy, true);
    for (const BackwardSide* b : sidesOf(queries, keys))
        backwardApart(run, s, *b, args, copy);
    run.expectSame("gradQkv, op by op", args.gradQkv, copy);
}

// Without gradients of the weights, gradQkv has the bits it has beside them.
void frozenHeads(CaseRun& run, DType type, const HeadShape& s, NormGain gain)
{
    const Input gradQkv = run.random(type, {s.tokens, s.columns()});
    const TensorView copy = run.given(type, {s.tokens, s.columns()}, gradQkv.values).view;
    const BackwardSide queries = backwardSideOf(run, type, s, s.firstHead, s.heads);
    const BackwardSide keys = backwardSideOf(run, type, s, s.heads, s.kvHeads);
    const Angles angles = anglesOf(run, s);
    HeadNormRopeBackwardArgs args{gradQkv.view, queries.own.norm, keys.own.norm,
        queries.before.view, keys.before.view,
        run.blank(DType::F32, {headNormPartials(s.tokens, s.heads, s.kvHeads), s.headDim}),
        angles.positions.view, angles.cosine.view, angles.sine.view, s.heads, s.kvHeads, s.headDim,
        s.rotaryDim, false, gain, s.firstHead};
    run.call(run.ops().headNormRopeBackward(args, run.stream()));
    args.gradQkv = copy;
    args.gradQueryWeight = {};
    args.gradKeyWeight = {};
    run.call(run.ops().headNormRopeBackward(args, run.stream()));
    run.expectSame("gradQkv", copy, gradQkv.view);
}

void addHeadShape(Table& table, DType type, const HeadShape& s, NormGain gain)
{
    const auto name = [&](const char* op, const char* more) {
        return fmt::format("{} {} ({}, {} + {} heads of {}, {} turn){}{}", op, typeName(type),
            s.tokens, s.heads, s.kvHeads, s.headDim, s.rotaryDim,
            gain == NormGain::OnePlusWeight ? " one plus weight" : "", more);
    };
    table.push_back({"headNormRope", name("headNormRope", ""),
        [=](CaseRun& run) { headNormRope(run, type, s, gain); }});
    for (const bool accumulate : {false, true})
        table.push_back(
            {"headNormRopeBackward", name("headNormRopeBackward", accumulate ? " accumulate" : ""),
                [=](CaseRun& run) { headNormRopeBackward(run, type, s, gain, accumulate); }});
    table.push_back({"headNormRopeBackward", name("headNormRopeBackward", " frozen"),
        [=](CaseRun& run) { frozenHeads(run, type, s, gain); }});
}

} // namespace

void addHeadCases(Table& table)
{
    Table lines;
    for (const DType type : kBothTypes)
        for (const HeadShape& s : kHeadShapes)
            for (const NormGain gain : {NormGain::Weight, NormGain::OnePlusWeight})
                addHeadShape(lines, type, s, gain);
    table.insert(table.end(), lines.begin(), lines.end());
    addLateStarts(table, lines);
}

} // namespace mr::conformance
