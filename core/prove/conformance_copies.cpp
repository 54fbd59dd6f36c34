// copyColumns: copies exactly, sums within their one rounding.

#include "core/prove/conformance_case.h"

#include <fmt/format.h>

#include <cmath>

namespace mr::conformance {

namespace {

struct CopyShape {
    std::int64_t rows, columns, fromCols, toCols, fromColumn, toColumn;
};

// One element; odd sizes and places; packs; more columns than a block; nothing.
constexpr CopyShape kCopyShapes[] = {{1, 1, 1, 1, 0, 0}, {7, 5, 9, 12, 3, 6},
    {33, 64, 192, 128, 64, 64}, {3, 1032, 1040, 2064, 8, 1024}, {0, 8, 8, 8, 0, 0},
    {5, 0, 8, 8, 8, 8}};

struct CopyTypes {
    DType from;
    DType to;
};

void copyColumns(CaseRun& run, CopyTypes types, const CopyShape& s, bool accumulate)
{
    const Input from = run.random(types.from, {s.rows, s.fromCols});
    const Input to = run.random(types.to, {s.rows, s.toCols});
    run.call(run.ops().copyColumns(
        {from.view, to.view, s.fromColumn, s.toColumn, s.columns, accumulate}, run.stream()));
    const bool isExact = !accumulate && (types.from == types.to || types.to == DType::F32);
    Values want = to.values;
    Values tolerance(want.size(), 0.0);
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t c = 0; c < s.columns; ++c) {
            const auto at = static_cast<std::size_t>(t * s.toCols + s.toColumn + c);
            const double read = from(t * s.fromCols + s.fromColumn + c);
            want[at] = read + (accumulate ? want[at] : 0.0);
            // The sum in F32, then its rounding.
            tolerance[at] = isExact ? 0.0 : (1.01 * unitOf(types.to) + kU) * std::abs(want[at]);
        }
    run.expect("to", to.view, want, tolerance);
}

} // namespace

void addCopyCases(Table& table)
{
    Table lines;
    for (const DType from : kBothTypes)
        for (const DType to : kBothTypes)
            for (const CopyShape& s : kCopyShapes)
                for (const bool accumulate : {false, true})
                    lines.push_back({"copyColumns",
                        fmt::format("copyColumns {} to {} ({}, {} of {} at {} to {} at {}){}",
                            typeName(from), typeName(to), s.rows, s.columns, s.fromCols,
                            s.fromColumn, s.toCols, s.toColumn, accumulate ? " accumulate" : ""),
                        [=](CaseRun& run) {
                            copyColumns(run, {from, to}, s, accumulate);
                        }});
    table.insert(table.end(), lines.begin(), lines.end());
    addLateStarts(table, lines);
}

} // namespace mr::conformance
