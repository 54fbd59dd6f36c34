// The ops of DoRA: adapterNorms, scaleColumns, columnDots.

#include "core/prove/conformance_counts.h"
#include "core/prove/conformance_dot.h"
#include "core/prove/conformance_shapes.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace mr::conformance {
namespace {

std::size_t placeIn(std::int64_t row, std::int64_t cols, std::int64_t col)
{
    return static_cast<std::size_t>(row * cols + col);
}

// Columns beside a window: none, or some before and behind it.
struct Beside {
    const char* words;
    std::int64_t before = 0;
    std::int64_t behind = 0;
};

constexpr Beside kBeside[] = {{"", 0, 0}, {" a window", 8, 16}, {" an odd window", 3, 2}};

struct NormShape {
    std::int64_t rows, cols, rank;
};

constexpr NormShape kNormShapes[] = {
    {1, 1, 1}, {8, 24, 4}, {7, 33, 3}, {130, 257, 16}, {3, 4096, 8}};

// V in double; its relative error in F32 is that of a sum of rank + 1 products, and the sum of
// squares adds one of `cols`. Half of it is left by the root; the division rounds once more.
void adapterNorms(CaseRun& run, DType type, const NormShape& s)
{
    Values rows = run.random(type, {s.rows, s.cols}).values;
    const Input a = run.random(type, {s.rank, s.cols}, 0.5);
    Values ofB = run.random(type, {s.rows, s.rank}, 0.5).values;
    if (s.rows > 3) { // a row of zeros has no direction
        std::fill_n(rows.begin() + 3 * s.cols, s.cols, 0.0);
        std::fill_n(ofB.begin() + 3 * s.rank, s.rank, 0.0);
    }
    const Input weight = run.given(type, {s.rows, s.cols}, rows);
    const Input b = run.given(type, {s.rows, s.rank}, ofB);
    const Input magnitude = run.random(type, {s.rows});
    constexpr float kScale = 1.5F;
    const AdapterNormsArgs args{weight.view, a.view, b.view, magnitude.view,
        run.blank(DType::F32, {s.rows}), run.blank(DType::F32, {s.rows}), kScale};
    run.call(run.ops().adapterNorms(args, run.stream()));
    Values norms, factors, normErrors, factorErrors;
    for (std::int64_t row = 0; row < s.rows; ++row) {
        double squares = 0.0;
        double errors = 0.0; // of the squares
        for (std::int64_t col = 0; col < s.cols; ++col) {
            Dot dot;
            dot.add(weight.values[placeIn(row, s.cols, col)]);
            for (std::int64_t k = 0; k < s.rank; ++k)
                dot.add(
                    1.5 * b.values[placeIn(row, s.rank, k)] * a.values[placeIn(k, s.cols, col)]);
            squares += dot.sum * dot.sum;
            errors += 2.0 * std::abs(dot.sum) * dot.tolerance(s.rank + 1, DType::F32);
        }
        errors += static_cast<double>(s.cols + 4) * kU * squares;
        const double norm = std::sqrt(squares);
        const double error = norm > 0.0 ? errors / norm + 2.0 * kU * norm : 0.0;
        norms.push_back(norm);
        normErrors.push_back(error);
        factors.push_back(norm > 0.0 ? magnitude(row) / norm : 0.0);
        factorErrors.push_back(
            norm > 0.0 ? std::abs(factors.back()) * (2.0 * error / norm + 2.0 * kU) : 0.0);
    }
    run.expect("norms", args.norms, norms, normErrors);
    run.expect("factors", args.factors, factors, factorErrors);
}

// A window whose columns have others beside them, which an op must leave alone.
ColumnWindow windowOf(const TensorView& matrix, const RowShape& s, const Beside& beside)
{
    return {matrix, beside.before, s.cols};
}

Input inWindow(CaseRun& run, DType type, const RowShape& s, const Beside& beside)
{
    return run.random(type, {s.rows, beside.before + s.cols + beside.behind});
}

// Other columns beside a window than those of `beside`, and more of them.
Beside swapped(const Beside& beside)
{
    return {"", beside.behind, 2 * beside.before};
}

enum class Scaling { Plain, Biased, InPlace, LateFactors };

void scaleColumns(
    CaseRun& run, DType type, const RowShape& s, const Beside& beside, Scaling scaling)
{
    const bool isInPlace = scaling == Scaling::InPlace;
    const Beside besideOut = isInPlace ? beside : swapped(beside);
    const std::int64_t late = scaling == Scaling::LateFactors ? 1 : 0; // others start late alone
    const Input x = inWindow(run, type, s, beside);
    const Input out = isInPlace ? x : inWindow(run, type, s, besideOut);
    const Input factors = run.random(DType::F32, {late + s.cols});
    const Input bias = run.random(type, {s.cols}, 2.0);
    const bool hasBias = scaling != Scaling::Plain;
    const ScaleColumnsArgs args{windowOf(x.view, s, beside), factors.view.rows(late, s.cols),
        hasBias ? bias.view : TensorView{}, windowOf(out.view, s, besideOut)};
    run.call(run.ops().scaleColumns(args, run.stream()));
    Values want = out.values; // the other columns stay
    for (std::int64_t row = 0; row < s.rows; ++row)
        for (std::int64_t col = 0; col < s.cols; ++col) {
            const float value =
                asFloat(x.values[placeIn(row, x.view.dims[1], beside.before + col)]);
            const float factor = asFloat(factors(late + col));
            const float b = asFloat(bias(col));
            const float scaled = hasBias ? std::fma(factor, value - b, b) : factor * value;
            want[placeIn(row, out.view.dims[1], besideOut.before + col)] =
                static_cast<double>(roundTo(type, scaled));
        }
    run.expectExactly("out", out.view, want);
}

void columnDots(
    CaseRun& run, DType type, DType to, const RowShape& s, const Beside& beside, bool accumulate)
{
    const Beside besideB = swapped(beside);
    const Input a = inWindow(run, type, s, beside);
    const Input b = inWindow(run, type, s, besideB);
    Values divisors = run.random(DType::F32, {s.cols}).values;
    for (double& divisor : divisors)
        divisor = std::abs(divisor) + 0.5;
    if (s.cols > 2)
        divisors[2] = 0.0;
    const Input by = run.given(DType::F32, {s.cols}, divisors);
    const Input before = run.random(to, {s.cols});
    const ColumnDotsArgs args{windowOf(a.view, s, beside), windowOf(b.view, s, besideB), by.view,
        before.view, accumulate};
    run.call(run.ops().columnDots(args, run.stream()));
    Values want, tolerance;
    for (std::int64_t col = 0; col < s.cols; ++col) {
        Dot dot;
        for (std::int64_t row = 0; row < s.rows; ++row)
            dot.add(a.values[placeIn(row, a.view.dims[1], beside.before + col)] *
                    b.values[placeIn(row, b.view.dims[1], besideB.before + col)]);
        const double divisor = by(col);
        const double share = divisor > 0.0 ? 1.0 / divisor : 0.0;
        Dot whole{dot.sum * share, dot.magnitude * share};
        if (accumulate)
            whole.add(before(col));
        want.push_back(whole.sum);
        tolerance.push_back(whole.tolerance(s.rows + 1, to));
    }
    run.expect("out", args.out, want, tolerance);
}

void addAdapterNormCases(Table& table, DType type)
{
    for (const NormShape& s : kNormShapes)
        table.push_back({"adapterNorms",
            describe("adapterNorms", type, RowShape{s.rows, s.cols},
                (" of rank " + std::to_string(s.rank)).c_str()),
            [=](CaseRun& run) { adapterNorms(run, type, s); }});
}

void addWindowedCases(Table& table, DType type, const RowShape& s, const Beside& beside)
{
    const std::string words = beside.words;
    const auto scale = [&](const char* how, Scaling scaling) {
        push(table, "scaleColumns", type, s, (words + how).c_str(),
            [=](CaseRun& run) { scaleColumns(run, type, s, beside, scaling); });
    };
    scale("", Scaling::Plain);
    scale(" bias", Scaling::Biased);
    scale(" bias, in place", Scaling::InPlace);
    scale(" bias, factors late", Scaling::LateFactors);
    if (s.rows == 0)
        return;
    const auto dots = [&](const char* how, DType to, bool accumulate) {
        push(table, "columnDots", type, s, (words + how).c_str(),
            [=](CaseRun& run) { columnDots(run, type, to, s, beside, accumulate); });
    };
    dots("", DType::F32, false);
    dots(" accumulate", DType::F32, true);
    if (type == DType::BF16)
        dots(" to bf16", DType::BF16, false);
}

} // namespace

void addDoraCases(Table& table)
{
    Table lines;
    for (const DType type : kBothTypes) {
        addAdapterNormCases(lines, type);
        for (const RowShape& s : kRowShapes)
            for (const Beside& beside : kBeside)
                addWindowedCases(lines, type, s, beside);
    }
    table.insert(table.end(), lines.begin(), lines.end());
    addLateStarts(table, lines);
}

} // namespace mr::conformance
