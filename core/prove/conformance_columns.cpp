// columnEnergy, gatherColumns and scatterColumns: ops that judge or pick columns. The sums against
// double precision, with a derived tolerance; moved values without one.

#include "core/prove/conformance_shapes.h"

#include <algorithm>

namespace mr::conformance {

namespace {

void columnEnergy(CaseRun& run, DType type, const RowShape& s, bool absolute)
{
    const Input grad = run.random(type, {s.rows, s.cols});
    const ColumnEnergyArgs args{grad.view, run.blank(DType::F32, {s.cols}), absolute};
    run.call(run.ops().columnEnergy(args, run.stream()));
    Values want(static_cast<std::size_t>(s.cols), 0.0);
    for (std::int64_t r = 0; r < s.rows; ++r)
        for (std::int64_t c = 0; c < s.cols; ++c) {
            const double g = grad(r * s.cols + c);
            want[static_cast<std::size_t>(c)] += absolute ? std::abs(g) : g * g;
        }
    Values tolerance; // terms are not negative: one unit per addition, one for the squares
    for (const double w : want)
        tolerance.push_back(static_cast<double>(s.rows + 1) * kU * w);
    run.expect("energy", args.energy, want, tolerance);
}

enum class Pick { EveryThird, Mixed, None };

Values pickedColumns(std::int64_t cols, Pick pick)
{
    Values columns;
    for (std::int64_t c = 1; pick != Pick::None && c < cols; c += 3)
        columns.push_back(static_cast<double>(c));
    if (pick == Pick::Mixed) { // falling, and from the middle
        std::reverse(columns.begin(), columns.end());
        const auto middle = static_cast<std::ptrdiff_t>(columns.size() / 3);
        std::rotate(columns.begin(), columns.begin() + middle, columns.end());
    }
    return columns;
}

// Nothing picked: views without memory, as a caller that owns no column has them.
TensorView orNone(const TensorView& view)
{
    TensorView same = view;
    if (view.count() == 0)
        same.data = nullptr;
    return same;
}

void gatherColumns(CaseRun& run, DType type, const RowShape& s, Pick pick)
{
    const Values picked = pickedColumns(s.cols, pick);
    const auto count = static_cast<std::int64_t>(picked.size());
    const Input x = run.random(type, {s.rows, s.cols});
    const Input columns = run.given(DType::I32, {count}, picked);
    const GatherColumnsArgs args{
        x.view, orNone(columns.view), orNone(run.blank(type, {s.rows, count}))};
    run.call(run.ops().gatherColumns(args, run.stream()));
    Values want;
    for (std::int64_t r = 0; r < s.rows; ++r)
        for (const double c : picked)
            want.push_back(x(r * s.cols + static_cast<std::int64_t>(c)));
    run.expectExactly("out", args.out, want);
}

void scatterColumns(CaseRun& run, DType type, const RowShape& s, Pick pick)
{
    const Values picked = pickedColumns(s.cols, pick);
    const auto count = static_cast<std::int64_t>(picked.size());
    const Input x = run.random(type, {s.rows, count});
    const Input columns = run.given(DType::I32, {count}, picked);
    const Input before = run.random(type, {s.rows, s.cols});
    const ScatterColumnsArgs args{orNone(x.view), orNone(columns.view), before.view};
    run.call(run.ops().scatterColumns(args, run.stream()));
    Values want = before.values;
    for (std::int64_t r = 0; r < s.rows; ++r)
        for (std::int64_t k = 0; k < count; ++k)
            want[static_cast<std::size_t>(
                r * s.cols + static_cast<std::int64_t>(picked[static_cast<std::size_t>(k)]))] =
                x(r * count + k);
    run.expectExactly("out", args.out, want);
}

void addColumnShape(Table& table, DType type, const RowShape& s)
{
    for (const bool absolute : {false, true})
        push(table, "columnEnergy", type, s, absolute ? " absolute" : "",
            [=](CaseRun& run) { columnEnergy(run, type, s, absolute); });
    constexpr std::pair<Pick, const char*> kPicks[] = {
        {Pick::EveryThird, ""}, {Pick::Mixed, " in mixed order"}, {Pick::None, " no column"}};
    for (const auto& [pick, words] : kPicks) {
        push(table, "gatherColumns", type, s, words,
            [=, pick = pick](CaseRun& run) { gatherColumns(run, type, s, pick); });
        push(table, "scatterColumns", type, s, words,
            [=, pick = pick](CaseRun& run) { scatterColumns(run, type, s, pick); });
    }
}

} // namespace

void addColumnCases(Table& table)
{
    Table lines;
    for (const DType type : kBothTypes)
        for (const RowShape& s : kRowShapes)
            addColumnShape(lines, type, s);
    table.insert(table.end(), lines.begin(), lines.end());
    addLateStarts(table, lines);
}

} // namespace mr::conformance
