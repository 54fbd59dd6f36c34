// projectionSigns, projectGradient and projectedStep. No tolerance: the order of
// core/device/light_update.h fixes every bit.

#include "core/base/philox.h"
#include "core/prove/conformance_sums.h"

namespace mr::conformance {
namespace {

// Signs are bits of philox(kSignKey, element / 128, kSignCounter).
constexpr std::uint64_t kSignKey = 0x0123'4567'89AB'CDEF;
constexpr std::uint64_t kSignCounter = 0xC0FF'EE00'0000'0007;

Values signsInOrder(std::int64_t count)
{
    Values signs;
    for (std::int64_t e = 0; e < count; ++e) {
        const auto words = philox(kSignKey, static_cast<std::uint64_t>(e / 128), kSignCounter);
        const std::uint32_t word = words[static_cast<std::size_t>(e % 128 / 32)];
        signs.push_back((word & (1U << (e % 32))) != 0 ? -1.0 : 1.0);
    }
    return signs;
}

void projectionSigns(CaseRun& run, std::int64_t count)
{
    const TensorView signs = run.blank(DType::F32, {count});
    run.call(run.ops().projectionSigns({signs, kSignKey, kSignCounter}, run.stream()));
    run.expectExactly("signs", signs, signsInOrder(count));
}

void projectGradient(CaseRun& run, const RowShape& s, bool overRows)
{
    const std::int64_t kept = overRows ? s.cols : s.rows;
    const std::int64_t summed = overRows ? s.rows : s.cols;
    const Input x = run.random(DType::F32, {s.rows, s.cols});
    const Input scalars = scalarsWith(run, true);
    const Values signs = signsInOrder(summed);
    ProjectGradientArgs args;
    args.x = x.view;
    args.signs = run.given(DType::F32, {summed}, signs).view;
    args.scalars = scalars.view;
    args.sums = run.blank(DType::F32, {kept});
    args.overRows = overRows;
    if (overRows)
        args.parts = run.blank(DType::F32, {rowParts(s.rows), s.cols});
    run.call(run.ops().projectGradient(args, run.stream()));
    Values want;
    for (std::int64_t k = 0; k < kept; ++k)
        want.push_back(static_cast<double>(
            sumInOrder(summed, overRows ? 64 : 256, [&](float sum, std::int64_t i) {
                const std::int64_t at = overRows ? i * s.cols + k : k * s.cols + i;
                return std::fma(
                    asFloat(x(at)) * kLightClip, asFloat(signs[static_cast<std::size_t>(i)]), sum);
            })));
    run.expectExactly("sums", args.sums, want);
}

struct Projecting {
    const char* words;
    bool isFirst;
    bool finite;
    double norm; // of the step before
};

constexpr Projecting kProjectings[] = {{" first", true, true, 0.0}, {" limited", false, true, 1e-3},
    {" below the limit", false, true, 1e6}, {" not finite", false, false, 0.5}};

float lengthInOrder(const Values& values)
{
    return std::sqrt(
        sumInOrder(static_cast<std::int64_t>(values.size()), 256, [&](float sum, std::int64_t i) {
            const float x = asFloat(values[static_cast<std::size_t>(i)]);
            return std::fma(x, x, sum);
        }));
}

void projectedStep(CaseRun& run, std::int64_t count, std::int64_t rows, const Projecting& how)
{
    constexpr float kRate = 1.3e-3F;
    const Input projected = run.random(DType::F32, {count});
    const Input squares = positive(run, rows, 1e-2, 0.0);
    const Input first = run.random(DType::F32, {count});
    const Input second = positive(run, count, 1e-2, 0.0);
    const Input norm = run.given(DType::F32, {1}, {static_cast<double>(asFloat(how.norm))});
    const Input scalars = scalarsWith(run, how.finite);
    const Input size = run.given(DType::F32, {1}, {3.0});
    run.call(run.ops().projectedStep({projected.view, squares.view, first.view, second.view,
                                         norm.view, size.view, scalars.view, kRate, how.isFirst},
        run.stream()));
    if (!how.finite) {
        run.expectExactly("first", first.view, first.values);
        run.expectExactly("second", second.view, second.values);
        run.expectExactly("norm", norm.view, norm.values);
        return;
    }
    Values m;
    Values v;
    Values ratios;
    for (std::int64_t i = 0; i < count; ++i) {
        const float r = asFloat(projected(i));
        const float mean = std::fma(0.1F, r, 0.9F * asFloat(first(i)));
        const float square = std::fma(0.001F * r, r, 0.999F * asFloat(second(i)));
        m.push_back(static_cast<double>(mean));
        v.push_back(static_cast<double>(square));
        ratios.push_back(static_cast<double>(mean / (std::sqrt(square) + 1e-6F)));
    }
    float factor = lengthInOrder(ratios) / (lengthInOrder(projected.values) + 1e-8F);
    float now = factor * std::sqrt(plainSum(squares.values));
    if (!how.isFirst) {
        const float over = std::max(now / (asFloat(how.norm) + 1e-8F), 1.01F) / 1.01F;
        factor = factor / over;
        now = now / over;
    }
    run.expectExactly("first", first.view, m);
    run.expectExactly("second", second.view, v);
    run.expectExactly("norm", norm.view, {static_cast<double>(now)});
    run.expectExactly("size", size.view, {static_cast<double>(kRate * factor)});
}

void addGradientCases(Table& table, const RowShape& s)
{
    for (const bool overRows : {false, true})
        push(table, "projectGradient", DType::F32, s, overRows ? " over rows" : "",
            [=](CaseRun& run) { projectGradient(run, s, overRows); });
}

void addProjectedStepCases(Table& table, std::int64_t count)
{
    for (const Projecting& how : kProjectings)
        for (const std::int64_t rows : {count, count / 3})
            if (rows > 0)
                push(table, "projectedStep", std::to_string(rows) + " rows" + how.words, count,
                    [=](CaseRun& run) { projectedStep(run, count, rows, how); });
}

} // namespace

void addProjectionCases(Table& table)
{
    Table lines;
    for (const RowShape& s : kSumShapes)
        addGradientCases(lines, s);
    for (const std::int64_t count : {1, 31, 32, 127, 128, 129, 1000, 5000})
        push(lines, "projectionSigns", "signs", count,
            [=](CaseRun& run) { projectionSigns(run, count); });
    for (const std::int64_t count : {1, 7, 512, 1000, 1025, 2048, 4097})
        addProjectedStepCases(lines, count);
    table.insert(table.end(), lines.begin(), lines.end());
    addLateStarts(table, lines);
    for (const RowShape& s : kLongRows)
        addGradientCases(table, s);
    for (const RowShape& s : kLongColumns)
        addGradientCases(table, s);
    addProjectedStepCases(table, 40'000);
}

} // namespace mr::conformance
