// gatedNorm, splitQueries, gateHeads and their backward ops against double precision.
//
// Tolerances count roundings of the formulas in recurrent_ops.h; u is the unit roundoff of F32.
// Each is written where it is used. sigmoid takes 8 u at most: an exponential of 4, a sum, a
// quotient.

#include "core/prove/conformance_recurrent.h"

#include <fmt/format.h>

namespace mr::conformance {

namespace {

struct GatedShape {
    std::int64_t rows, heads, dim, cols, firstColumn;

    std::int64_t all() const { return rows * heads; }
    std::int64_t at(std::int64_t row, std::int64_t c) const
    {
        return row / heads * cols + firstColumn + row % heads * dim + c;
    }
};

// One element; odd sizes; heads of models; rows longer than a warp's packs; wider rows beside; no
// row.
constexpr GatedShape kGatedShapes[] = {{1, 1, 1, 1, 0}, {7, 3, 7, 40, 5}, {33, 2, 12, 24, 0},
    {45, 4, 64, 300, 16}, {23, 3, 128, 384, 0}, {3, 2, 320, 648, 8}, {0, 2, 64, 128, 0}};

struct GatedInputs {
    Input x, gate, weight;
};

GatedInputs gatedInputs(CaseRun& run, DType type, const GatedShape& s)
{
    return {run.random(type, {s.rows, s.heads * s.dim}), run.random(type, {s.rows, s.cols}, 2.0),
        run.random(type, {s.dim})};
}

// s(z) and its slope.
double siluOf(double z)
{
    return z * sigmoidOf(z);
}

double siluSlope(double z)
{
    return sigmoidOf(z) * (1.0 + z * (1.0 - sigmoidOf(z)));
}

void gatedNorm(CaseRun& run, DType type, const GatedShape& s)
{
    const GatedInputs in = gatedInputs(run, type, s);
    const GatedNormArgs args{in.x.view, in.gate.view, in.weight.view,
        run.blank(type, {s.rows, s.heads * s.dim}), run.blank(DType::F32, {s.rows, s.heads}),
        s.firstColumn, 1e-5F};
    run.call(run.ops().gatedNorm(args, run.stream()));
    // As in the case of rmsNorm; then four products and a sigmoid.
    const double relative = (0.5 * static_cast<double>(s.dim) + 6.0) * kU;
    Values want, tolerance, rstd, rstdTolerance;
    for (std::int64_t row = 0; row < s.all(); ++row) {
        double squares = 0.0;
        for (std::int64_t c = 0; c < s.dim; ++c)
            squares += std::pow(in.x(row * s.dim + c), 2.0);
        rstd.push_back(
            1.0 / std::sqrt(squares / static_cast<double>(s.dim) + static_cast<double>(args.eps)));
        rstdTolerance.push_back(relative * rstd.back());
        for (std::int64_t c = 0; c < s.dim; ++c) {
            want.push_back(
                in.weight(c) * in.x(row * s.dim + c) * rstd.back() * siluOf(in.gate(s.at(row, c))));
            tolerance.push_back(
                (relative + 12.0 * kU + 1.01 * unitOf(type)) * std::abs(want.back()));
        }
    }
    run.expect("rstd", args.rstd, rstd, rstdTolerance);
    run.expect("out", args.out, want, tolerance);
}

struct GatedBackward {
    GatedInputs in;
    Input gradOut, rstd, before;
    GatedNormBackwardArgs args;
};

GatedBackward gatedBackward(CaseRun& run, DType type, const GatedShape& s)
{
    GatedBackward b{gatedInputs(run, type, s), run.random(type, {s.rows, s.heads * s.dim}), {},
        run.random(DType::F32, {s.dim}), {}};
    Values rstd;
    for (std::int64_t row = 0; row < s.all(); ++row)
        rstd.push_back(static_cast<double>(0.5F + 0.01F * static_cast<float>(row % 50)));
    b.rstd = run.given(DType::F32, {s.rows, s.heads}, rstd);
    const Values held(static_cast<std::size_t>(s.rows * s.cols), 3.0);
    b.args = {b.gradOut.view, b.in.x.view, b.in.gate.view, b.in.weight.view, b.rstd.view,
        run.blank(type, {s.rows, s.heads * s.dim}), run.given(type, {s.rows, s.cols}, held).view,
        b.before.view, run.blank(DType::F32, {recurrentBlocks(s.all()), s.dim}), s.firstColumn,
        false};
    return b;
}

struct GatedGradients {
    Values x, xTolerance, gate, gateTolerance, weight, weightTolerance;
};

// One row's gradients into `g`.
void addGatedRow(
    const GatedShape& s, DType type, const GatedBackward& b, std::int64_t row, GatedGradients& g)
{
    // As in the case of rmsNormBackward, with a sigmoid more in each term.
    const double relative = (static_cast<double>(s.dim) + 32.0) * kU;
    const double sumRelative = (static_cast<double>(s.all()) + 24.0) * kU;
    const double rstd = b.rstd(row);
    const auto grad = [&](std::int64_t c) { return b.gradOut(row * s.dim + c); };
    const auto normed = [&](std::int64_t c) { return b.in.x(row * s.dim + c) * rstd; };
    const auto gate = [&](std::int64_t c) { return b.in.gate(s.at(row, c)); };
    const auto scaled = [&](std::int64_t c) { return grad(c) * b.in.weight(c) * siluOf(gate(c)); };
    double mean = 0.0;
    double size = 0.0;
    for (std::int64_t c = 0; c < s.dim; ++c) {
        mean += scaled(c) * normed(c) / static_cast<double>(s.dim);
        size += std::abs(scaled(c) * normed(c)) / static_cast<double>(s.dim);
    }
    for (std::int64_t c = 0; c < s.dim; ++c) {
        const double gradX = rstd * (scaled(c) - normed(c) * mean);
        const double parts = rstd * (std::abs(scaled(c)) + std::abs(normed(c)) * size);
        g.x.push_back(gradX);
        g.xTolerance.push_back(
            relative * parts + unitOf(type) * (std::abs(gradX) + relative * parts));
        const auto at = static_cast<std::size_t>(s.at(row, c));
        const double outer = grad(c) * b.in.weight(c) * normed(c);
        g.gate[at] = outer * siluSlope(gate(c));
        g.gateTolerance[at] =
            20.0 * kU * std::abs(outer) * sigmoidOf(gate(c)) * (1.0 + std::abs(gate(c))) +
            1.01 * unitOf(type) * std::abs(g.gate[at]);
        const auto column = static_cast<std::size_t>(c);
        const double term = grad(c) * normed(c) * siluOf(gate(c));
        g.weight[column] += term;
        g.weightTolerance[column] += sumRelative * std::abs(term);
    }
}

void gatedNormBackward(CaseRun& run, DType type, const GatedShape& s, bool accumulate, bool inPlace)
{
    GatedBackward b = gatedBackward(run, type, s);
    b.args.accumulate = accumulate;
    if (inPlace)
        b.args.gradGate = b.args.gate;
    run.call(run.ops().gatedNormBackward(b.args, run.stream()));
    GatedGradients g{{}, {}, Values(static_cast<std::size_t>(s.rows * s.cols), 3.0), {},
        Values(static_cast<std::size_t>(s.dim), 0.0), {}};
    if (inPlace)
        g.gate = b.in.gate.values;
    g.gateTolerance.resize(g.gate.size(), 0.0);
    g.weightTolerance.resize(g.weight.size(), 0.0);
    for (std::int64_t row = 0; row < s.all(); ++row)
        addGatedRow(s, type, b, row, g);
    for (std::size_t i = 0; i < g.weight.size(); ++i) {
        g.weight[i] += accumulate ? b.before.values[i] : 0.0;
        g.weightTolerance[i] += 2.0 * kU * std::abs(g.weight[i]);
    }
    run.expect("gradX", b.args.gradX, g.x, g.xTolerance);
    run.expect("gradGate", b.args.gradGate, g.gate, g.gateTolerance);
    run.expect("gradWeight", b.args.gradWeight, g.weight, g.weightTolerance);
}

// Without a gradient of the weight, and with one that is rounded: the bits beside an F32 one.
void gatedFrozenAndRounded(CaseRun& run, DType type, const GatedShape& s)
{
    GatedBackward b = gatedBackward(run, type, s);
    run.call(run.ops().gatedNormBackward(b.args, run.stream()));
    const TensorView gradX = b.args.gradX;
    const TensorView sum = b.args.gradWeight;
    b.args.gradX = run.blank(type, {s.rows, s.heads * s.dim});
    b.args.gradWeight = {};
    run.call(run.ops().gatedNormBackward(b.args, run.stream()));
    run.expectSame("gradX, frozen", b.args.gradX, gradX);
    if (type != DType::BF16)
        return;
    b.args.gradWeight = run.blank(type, {s.dim});
    run.call(run.ops().gatedNormBackward(b.args, run.stream()));
    run.expectSame("gradWeight, rounded", b.args.gradWeight, run.rounded(sum));
}

struct JoinedShape {
    std::int64_t rows;
    int heads, kvHeads, dim;

    std::int64_t queries() const { return std::int64_t{heads} * dim; }
    std::int64_t others() const { return 2 * std::int64_t{kvHeads} * dim; }
    std::int64_t joined() const { return 2 * queries() + others(); }
    std::int64_t packed() const { return queries() + others(); }
    // First column of a head's gate.
    std::int64_t gate(std::int64_t head) const { return (2 * head + 1) * dim; }
};

constexpr JoinedShape kJoinedShapes[] = {
    {1, 1, 1, 1}, {7, 3, 1, 7}, {33, 4, 2, 64}, {5, 2, 1, 256}, {0, 2, 1, 8}};

// Column of `joined` of a column of the packed rows.
std::int64_t joinedColumn(const JoinedShape& s, std::int64_t column)
{
    return column < s.queries() ? column / s.dim * 2 * s.dim + column % s.dim
                                : column + s.queries();
}

void splitQueries(CaseRun& run, DType type, const JoinedShape& s, bool back)
{
    const Input joined = run.random(type, {s.rows, s.joined()});
    const Input qkv = run.random(type, {s.rows, s.packed()});
    run.call(run.ops().splitQueries(
        {joined.view, qkv.view, s.heads, s.kvHeads, s.dim, back}, run.stream()));
    Values wantJoined = joined.values;
    Values wantPacked = qkv.values;
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t c = 0; c < s.packed(); ++c) {
            double& one = wantJoined[static_cast<std::size_t>(t * s.joined() + joinedColumn(s, c))];
            double& other = wantPacked[static_cast<std::size_t>(t * s.packed() + c)];
            (back ? one : other) = back ? other : one;
        }
    run.expectExactly("joined", joined.view, wantJoined);
    run.expectExactly("qkv", qkv.view, wantPacked);
}

void gateHeads(CaseRun& run, DType type, const JoinedShape& s, bool inPlace)
{
    const Input x = run.random(type, {s.rows, s.queries()});
    const Input joined = run.random(type, {s.rows, s.joined()}, 2.0);
    const TensorView out = inPlace ? x.view : run.blank(type, {s.rows, s.queries()});
    run.call(
        run.ops().gateHeads({x.view, joined.view, out, s.heads, s.kvHeads, s.dim}, run.stream()));
    Values want, tolerance;
    for (std::int64_t i = 0; i < s.rows * s.queries(); ++i) {
        const std::int64_t c = i % s.queries();
        const std::int64_t gate = i / s.queries() * s.joined() + s.gate(c / s.dim) + c % s.dim;
        want.push_back(x(i) * sigmoidOf(joined(gate)));
        tolerance.push_back((9.0 * kU + 1.01 * unitOf(type)) * std::abs(want.back()));
    }
    run.expect("out", out, want, tolerance);
}

void gateHeadsBackward(CaseRun& run, DType type, const JoinedShape& s, bool inPlace)
{
    const Input gradOut = run.random(type, {s.rows, s.queries()});
    const Input x = run.random(type, {s.rows, s.queries()});
    const Input joined = run.random(type, {s.rows, s.joined()}, 2.0);
    const Input other = run.random(type, {s.rows, s.joined()});
    const TensorView gradX = inPlace ? gradOut.view : run.blank(type, {s.rows, s.queries()});
    const Input& gradJoined = inPlace ? joined : other;
    run.call(run.ops().gateHeadsBackward(
        {gradOut.view, x.view, joined.view, gradX, gradJoined.view, s.heads, s.kvHeads, s.dim},
        run.stream()));
    Values want, tolerance;
    Values gates = gradJoined.values;
    Values gateTolerance(gates.size(), 0.0);
    for (std::int64_t i = 0; i < s.rows * s.queries(); ++i) {
        const std::int64_t c = i % s.queries();
        const std::int64_t gate = i / s.queries() * s.joined() + s.gate(c / s.dim) + c % s.dim;
        const double sg = sigmoidOf(joined(gate));
        want.push_back(gradOut(i) * sg);
        tolerance.push_back((9.0 * kU + 1.01 * unitOf(type)) * std::abs(want.back()));
        const auto at = static_cast<std::size_t>(gate);
        const double outer = gradOut(i) * x(i) * sg;
        gates[at] = outer * (1.0 - sg);
        // 1 - sigmoid cancels: its error is that of sigmoid.
        gateTolerance[at] = 20.0 * kU * std::abs(outer) + 1.01 * unitOf(type) * std::abs(gates[at]);
    }
    run.expect("gradX", gradX, want, tolerance);
    run.expect("gradJoined", gradJoined.view, gates, gateTolerance);
}

void addGatedShape(Table& table, DType type, const GatedShape& s)
{
    const auto name = [&](const char* op, const char* more) {
        return fmt::format("{} {} ({}, {} heads of {}, in {}){}", op, typeName(type), s.rows,
            s.heads, s.dim, s.cols, more);
    };
    table.push_back(
        {"gatedNorm", name("gatedNorm", ""), [=](CaseRun& run) { gatedNorm(run, type, s); }});
    for (const bool on : {false, true})
        table.push_back(
            {"gatedNormBackward", name("gatedNormBackward", on ? " in place, accumulate" : ""),
                [=](CaseRun& run) { gatedNormBackward(run, type, s, on, on); }});
    table.push_back({"gatedNormBackward", name("gatedNormBackward", " frozen"),
        [=](CaseRun& run) { gatedFrozenAndRounded(run, type, s); }});
}

void addJoinedShape(Table& table, DType type, const JoinedShape& s)
{
    const auto name = [&](const char* op, const char* more) {
        return fmt::format("{} {} ({}, {} + {} heads of {}){}", op, typeName(type), s.rows, s.heads,
            s.kvHeads, s.dim, more);
    };
    for (const bool on : {false, true}) {
        table.push_back({"splitQueries", name("splitQueries", on ? " back" : ""),
            [=](CaseRun& run) { splitQueries(run, type, s, on); }});
        table.push_back({"gateHeads", name("gateHeads", on ? " in place" : ""),
            [=](CaseRun& run) { gateHeads(run, type, s, on); }});
        table.push_back({"gateHeadsBackward", name("gateHeadsBackward", on ? " in place" : ""),
            [=](CaseRun& run) { gateHeadsBackward(run, type, s, on); }});
    }
}

} // namespace

void addGatedCases(Table& table)
{
    Table lines;
    for (const DType type : kBothTypes) {
        for (const GatedShape& s : kGatedShapes)
            addGatedShape(lines, type, s);
        for (const JoinedShape& s : kJoinedShapes)
            addJoinedShape(lines, type, s);
    }
    table.insert(table.end(), lines.begin(), lines.end());
    addLateStarts(table, lines);
}

} // namespace mr::conformance
