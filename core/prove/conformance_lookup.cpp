// embed and embedBackward against double precision: ops that pick rows.
//
// Tolerances count roundings of the formulas in ops.h. Each is written where it is used.

#include "core/prove/conformance_shapes.h"

#include <algorithm>
#include <numeric>

namespace mr::conformance {

namespace {

constexpr std::int64_t kVocabulary = 70; // more than an item of the backward pass

constexpr std::int64_t kSomeRows = 17; // fewer than there are ids

Values someIds(std::int64_t tokens)
{
    Values ids;
    for (std::int64_t t = 0; t < tokens; ++t)
        ids.push_back(static_cast<double>(t % 5 == 0 ? kVocabulary - 1 : t * 7 % 23));
    return ids;
}

// No number of BF16: it is rounded to one.
constexpr float kScale = 1.4142135F;

double scaleOf(DType type, bool scaled)
{
    return scaled ? static_cast<double>(roundTo(type, kScale)) : 1.0;
}

void embed(CaseRun& run, DType type, const RowShape& s, bool scaled)
{
    const Input table = run.random(type, {kVocabulary, s.cols});
    const Input ids = run.given(DType::I32, {s.rows}, someIds(s.rows));
    const EmbedArgs args{
        ids.view, table.view, run.blank(type, {s.rows, s.cols}), scaled ? kScale : 1.0F};
    run.call(run.ops().embed(args, run.stream()));
    Values want;
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t c = 0; c < s.cols; ++c)
            want.push_back(static_cast<double>(roundTo(
                type, static_cast<float>(scaleOf(type, scaled) *
                                         table(static_cast<std::int64_t>(ids(t)) * s.cols + c)))));
    run.expectExactly("out", args.out, want);
}

Values orderOf(const Input& ids, std::int64_t tokens)
{
    Values order(static_cast<std::size_t>(tokens));
    std::iota(order.begin(), order.end(), 0.0);
    std::stable_sort(order.begin(), order.end(), [&](double a, double b) {
        return ids(static_cast<std::int64_t>(a)) < ids(static_cast<std::int64_t>(b));
    });
    return order;
}

// With `more`: added to the table's gradient, and scaled. Nothing is added to `untrained`. The
// table has `rows` of the vocabulary.
void embedBackward(CaseRun& run, DType type, const RowShape& s, bool more, std::int64_t untrained,
    std::int64_t rows = kVocabulary)
{
    const bool accumulate = more;
    const Input ids = run.given(DType::I32, {s.rows}, someIds(s.rows));
    const Input sorted = run.given(DType::I32, {s.rows}, orderOf(ids, s.rows));
    const Input gradOut = run.random(type, {s.rows, s.cols});
    const Input before = run.random(DType::F32, {rows, s.cols});
    const EmbedBackwardArgs args{ids.view, sorted.view, gradOut.view, before.view, accumulate,
        more ? kScale : 1.0F, untrained};
    run.call(run.ops().embedBackward(args, run.stream()));
    const auto count = static_cast<std::size_t>(rows * s.cols);
    Values want(count, 0.0);
    Values magnitude(count, 0.0);
    for (std::int64_t t = 0; t < s.rows; ++t)
        for (std::int64_t c = 0; c < s.cols; ++c) {
            const auto row = static_cast<std::int64_t>(ids(t));
            const auto at = static_cast<std::size_t>(row * s.cols + c);
            if (row == untrained || row >= rows)
                continue;
            const double grad = scaleOf(type, more) * gradOut(t * s.cols + c);
            want[at] += grad;
            magnitude[at] += std::abs(grad);
        }
    Values tolerance; // at most `rows` additions of floats, and the scale
    for (std::size_t i = 0; i < count; ++i) {
        if (accumulate)
            want[i] += before.values[i];
        const double size = magnitude[i] + (accumulate ? std::abs(before.values[i]) : 0.0);
        tolerance.push_back(static_cast<double>(s.rows + 2) * kU * size);
    }
    run.expect("gradTable", args.gradTable, want, tolerance);
}

// The gradient of a BF16 table is that in F32, rounded.
void roundingTheTable(CaseRun& run, const RowShape& s)
{
    constexpr DType kType = DType::BF16;
    const Input ids = run.given(DType::I32, {s.rows}, someIds(s.rows));
    const Input order = run.given(DType::I32, {s.rows}, orderOf(ids, s.rows));
    const Input gradOut = run.random(kType, {s.rows, s.cols});
    EmbedBackwardArgs args{ids.view, order.view, gradOut.view, {}, false, kScale};
    args.gradTable = run.blank(DType::F32, {kVocabulary, s.cols});
    run.call(run.ops().embedBackward(args, run.stream()));
    const TensorView want = run.rounded(args.gradTable);
    args.gradTable = run.blank(kType, {kVocabulary, s.cols});
    run.call(run.ops().embedBackward(args, run.stream()));
    run.expectSame("gradTable", args.gradTable, want);
}

} // namespace

void addLookupCases(Table& table)
{
    for (const DType type : kBothTypes)
        for (const RowShape& s : kRowShapes) {
            push(table, "embed", type, s, "", [=](CaseRun& run) { embed(run, type, s, false); });
            push(table, "embed", type, s, " scaled",
                [=](CaseRun& run) { embed(run, type, s, true); });
            if (type == DType::BF16)
                push(table, "embedBackward", type, s, " rounded",
                    [=](CaseRun& run) { roundingTheTable(run, s); });
            for (const bool on : {false, true}) {
                push(table, "embedBackward", type, s, on ? " accumulate, scaled" : "",
                    [=](CaseRun& run) { embedBackward(run, type, s, on, -1); });
                push(table, "embedBackward", type, s,
                    on ? " accumulate, scaled, a row untrained" : " a row untrained",
                    [=](CaseRun& run) { embedBackward(run, type, s, on, kVocabulary - 1); });
                push(table, "embedBackward", type, s,
                    on ? " accumulate, scaled, ids without a row" : " ids without a row",
                    [=](CaseRun& run) { embedBackward(run, type, s, on, -1, kSomeRows); });
            }
        }
}

} // namespace mr::conformance
