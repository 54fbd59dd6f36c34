// rowSquares, columnSquares, averageSquares and lightStepSize. No tolerance: the order of
// core/device/light_update.h fixes every bit, and the references here follow it with a tree of
// their own.

#include "core/prove/conformance_sums.h"

#include <algorithm>

namespace mr::conformance {
namespace {

struct Divided {
    const char* words;
    bool hasScalars;
    bool hasRoots;
};

constexpr Divided kDivided[] = {{"", false, false}, {" clipped", true, false},
    {" with roots", false, true}, {" with roots, clipped", true, true}};

void rowSquares(CaseRun& run, DType type, const RowShape& s, const Divided& how)
{
    const Input x = run.random(type, {s.rows, s.cols});
    const Input scalars = scalarsWith(run, true);
    const Input rowRoots = positive(run, s.rows, 1.0, 0.125);
    const Input columnRoots = positive(run, s.cols, 1.0, 0.125);
    RowSquaresArgs args;
    args.x = x.view;
    args.sums = run.blank(DType::F32, {s.rows});
    if (how.hasScalars)
        args.scalars = scalars.view;
    if (how.hasRoots) {
        args.rowRoots = rowRoots.view;
        args.columnRoots = columnRoots.view;
    }
    run.call(run.ops().rowSquares(args, run.stream()));
    Values want;
    for (std::int64_t row = 0; row < s.rows; ++row)
        want.push_back(static_cast<double>(sumInOrder(s.cols, 256, [&](float sum, std::int64_t j) {
            const float g = asFloat(x(row * s.cols + j)) * (how.hasScalars ? kLightClip : 1.0F);
            const float u =
                how.hasRoots ? g / (asFloat(rowRoots(row)) * asFloat(columnRoots(j))) : g;
            return std::fma(u, u, sum);
        })));
    run.expectExactly("sums", args.sums, want);
}

void columnSquares(CaseRun& run, const RowShape& s)
{
    const Input x = run.random(DType::F32, {s.rows, s.cols});
    const Input scalars = scalarsWith(run, true);
    const ColumnSquaresArgs args{x.view, scalars.view,
        run.blank(DType::F32, {rowParts(s.rows), s.cols}), run.blank(DType::F32, {s.cols})};
    run.call(run.ops().columnSquares(args, run.stream()));
    Values want;
    for (std::int64_t column = 0; column < s.cols; ++column)
        want.push_back(static_cast<double>(sumInOrder(s.rows, 64, [&](float sum, std::int64_t i) {
            const float g = asFloat(x(i * s.cols + column)) * kLightClip;
            return std::fma(g, g, sum);
        })));
    run.expectExactly("sums", args.sums, want);
}

// An average of each sum of `elements` squares.
Values averagesInOrder(
    const Input& averages, const Input& sums, std::int64_t elements, float past, float present)
{
    Values next;
    for (std::size_t i = 0; i < sums.values.size(); ++i) {
        const float mean = asFloat(sums.values[i]) / static_cast<float>(elements) + 1e-30F;
        next.push_back(
            static_cast<double>(std::fma(present, mean, past * asFloat(averages.values[i]))));
    }
    return next;
}

Values rootsInOrder(const Values& averages, float divisor)
{
    Values roots;
    for (const double average : averages)
        roots.push_back(static_cast<double>(std::sqrt(asFloat(average) / divisor)));
    return roots;
}

enum class Averaging { First, Later, NotFinite };

void averageSquares(CaseRun& run, const RowShape& s, Averaging when)
{
    const bool isFirst = when == Averaging::First;
    const float past = isFirst ? 0.0F : 0.625F;
    const float present = isFirst ? 1.0F : 0.375F;
    Input rowSums = positive(run, s.rows, 1e-4, 0.0);
    if (s.rows > 2) { // a row without a gradient
        rowSums.values[2] = 0.0;
        rowSums = run.given(DType::F32, {s.rows}, rowSums.values);
    }
    const Input columnSums = positive(run, s.cols, 1e-4, 0.0);
    const Input rows = positive(run, s.rows, 1e-6, 0.0);
    const Input columns = positive(run, s.cols, 1e-6, 0.0);
    const Input scalars = scalarsWith(run, when != Averaging::NotFinite);
    run.call(run.ops().averageSquares(
        {rowSums.view, columnSums.view, rows.view, columns.view, scalars.view, past, present},
        run.stream()));
    if (when == Averaging::NotFinite) {
        run.expectExactly("rows", rows.view, rows.values);
        run.expectExactly("columns", columns.view, columns.values);
        return;
    }
    const Values r = averagesInOrder(rows, rowSums, s.cols, past, present);
    const Values c = averagesInOrder(columns, columnSums, s.rows, past, present);
    run.expectExactly("rows", rows.view, r);
    run.expectExactly("columns", columns.view, c);
    run.expectExactly(
        "row roots", rowSums.view, rootsInOrder(r, plainSum(r) / static_cast<float>(s.rows)));
    run.expectExactly("column roots", columnSums.view, rootsInOrder(c, 1.0F));
}

struct Sizing {
    const char* words;
    StepRule rule;
    double updates; // size of the sums
    double weights;
};

constexpr Sizing kSizings[] = {
    {"limited", StepRule::Limited, 100.0, 0.0},
    {"limited, below the limit", StepRule::Limited, 1e-2, 0.0},
    {"relative", StepRule::Relative, 100.0, 1.0},
    {"relative to a small weight", StepRule::Relative, 1e-2, 1e-9},
    {"normalised", StepRule::Normalised, 1e-3, 0.0},
    {"normalised, of zeros", StepRule::Normalised, 0.0, 0.0},
};

void lightStepSize(CaseRun& run, std::int64_t rows, const Sizing& how)
{
    constexpr float kRate = 1.3e-3F;
    constexpr float kLimit = 0.75F;
    const Input updates = positive(run, rows, how.updates, 0.0);
    const Input weights = positive(run, rows, how.weights, 0.0);
    StepSizeArgs args;
    args.updateSums = updates.view;
    if (how.rule == StepRule::Relative)
        args.weightSums = weights.view;
    args.size = run.blank(DType::F32, {1});
    args.count = 7 * rows;
    args.rule = how.rule;
    args.rate = kRate;
    args.limit = kLimit;
    run.call(run.ops().lightStepSize(args, run.stream()));
    const auto count = static_cast<float>(args.count);
    const float rms = std::sqrt(plainSum(updates.values) / count);
    const float weight = std::sqrt(plainSum(weights.values) / count);
    const float rate = how.rule == StepRule::Relative ? kRate * std::max(1e-3F, weight) : kRate;
    float size = rate / std::max(1.0F, rms / kLimit);
    if (how.rule == StepRule::Normalised)
        size = rms > 0.0F ? kRate / rms : 0.0F;
    run.expectExactly("size", args.size, {static_cast<double>(size)});
}

void addSumCases(Table& table, const RowShape& s)
{
    for (const DType type : kBothTypes)
        for (const Divided& how : kDivided)
            push(table, "rowSquares", type, s, how.words,
                [=](CaseRun& run) { rowSquares(run, type, s, how); });
}

void addColumnSumCase(Table& table, const RowShape& s)
{
    push(table, "columnSquares", DType::F32, s, "", [=](CaseRun& run) { columnSquares(run, s); });
}

void addAverageCases(Table& table, const RowShape& s)
{
    constexpr std::pair<Averaging, const char*> kTimes[] = {{Averaging::First, " first"},
        {Averaging::Later, " later"}, {Averaging::NotFinite, " not finite"}};
    for (const auto& [when, words] : kTimes)
        if (s.rows > 0)
            push(table, "averageSquares", DType::F32, s, words,
                [=, when = when](CaseRun& run) { averageSquares(run, s, when); });
}

void addStepSizeCases(Table& table, std::int64_t rows)
{
    for (const Sizing& how : kSizings)
        push(table, "lightStepSize", how.words, rows,
            [=](CaseRun& run) { lightStepSize(run, rows, how); });
}

} // namespace

void addLightCases(Table& table)
{
    Table lines;
    for (const RowShape& s : kSumShapes) {
        addSumCases(lines, s);
        addColumnSumCase(lines, s);
        addAverageCases(lines, s);
    }
    for (const std::int64_t rows : {1, 7, 512, 1000, 1025, 2048, 4097})
        addStepSizeCases(lines, rows);
    table.insert(table.end(), lines.begin(), lines.end());
    addLateStarts(table, lines);
    for (const RowShape& s : kLongRows)
        addSumCases(table, s);
    for (const RowShape& s : kLongColumns) {
        addColumnSumCase(table, s);
        addAverageCases(table, s);
    }
    addStepSizeCases(table, 40'000);
}

} // namespace mr::conformance
