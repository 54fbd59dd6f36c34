// encodeInputs and decodeInputs. No tolerance: core/device/input_codes.h fixes every bit.

#include "core/prove/conformance_counts.h"
#include "core/prove/conformance_shapes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::conformance {
namespace {

constexpr float kLargestCode = 127.0F;

struct CodedValues {
    Values codes;
    Values scales;
    Values decoded;
};

CodedValues codedInOrder(const Values& x, const RowShape& s, DType type)
{
    CodedValues coded{x, {}, x};
    for (std::int64_t row = 0; row < s.rows; ++row)
        for (std::int64_t first = 0; first < s.cols; first += 128) {
            const auto begin = static_cast<std::size_t>(row * s.cols + first);
            const auto end = static_cast<std::size_t>(row * s.cols + std::min(s.cols, first + 128));
            float largest = 0.0F;
            bool isFinite = true;
            for (std::size_t i = begin; i < end; ++i) {
                largest = std::max(largest, std::abs(asFloat(x[i])));
                isFinite = isFinite && std::isfinite(x[i]);
            }
            const bool isCoded = isFinite && largest >= std::ldexp(1.0F, -121);
            const float scale = isCoded ? largest / kLargestCode : 0.0F;
            coded.scales.push_back(
                isFinite ? static_cast<double>(scale) : std::numeric_limits<double>::quiet_NaN());
            for (std::size_t i = begin; i < end; ++i) {
                const float code =
                    isCoded ? std::nearbyint(asFloat(x[i]) * (kLargestCode / largest)) : 0.0F;
                coded.codes[i] = static_cast<double>(code);
                coded.decoded[i] = isFinite ? static_cast<double>(roundTo(type, code * scale))
                                            : std::numeric_limits<double>::quiet_NaN();
            }
        }
    return coded;
}

void encodeInputs(CaseRun& run, DType type, const RowShape& s, const Values& values)
{
    const Input x = run.given(type, {s.rows, s.cols}, values);
    const CodedValues want = codedInOrder(x.values, s, type);
    const EncodeInputsArgs args{x.view, run.blank(DType::I8, {s.rows, s.cols}),
        run.blank(DType::F32, {s.rows, codedGroups(s.cols)})};
    run.call(run.ops().encodeInputs(args, run.stream()));
    run.expectExactly("codes", args.codes, want.codes);
    run.expectExactly("scales", args.scales, want.scales);
}

void decodeInputs(CaseRun& run, DType type, const RowShape& s, const Values& values)
{
    const CodedValues coded = codedInOrder(values, s, type);
    const DecodeInputsArgs args{run.given(DType::I8, {s.rows, s.cols}, coded.codes).view,
        run.given(DType::F32, {s.rows, codedGroups(s.cols)}, coded.scales).view,
        run.blank(type, {s.rows, s.cols})};
    run.call(run.ops().decodeInputs(args, run.stream()));
    run.expectExactly("out", args.out, coded.decoded);
}

// A row of each: zeros; a NaN, an infinity and a number beside it in groups of their own; numbers
// too small for a code, and the largest; halves, which round to an even code.
Values unusualInputs(DType type, std::int64_t cols)
{
    const double largest = type == DType::F32
                               ? static_cast<double>(std::numeric_limits<float>::max())
                               : std::ldexp(255.0, 120);
    const std::vector<Values> rows = {{0.0, -0.0}, {std::numeric_limits<double>::quiet_NaN(), 1.0},
        {1.0, -std::numeric_limits<double>::infinity()}, {std::ldexp(1.0, -122), 0.0},
        {std::ldexp(1.0, -121), std::ldexp(-1.0, -123)}, {largest, -largest, 1.0},
        {127.0, 0.5, 1.5, 2.5, -0.5, -1.5, 126.5, -127.0}, {-1.0, 1e-3, 0.5}};
    Values values;
    for (const Values& row : rows)
        for (std::int64_t i = 0; i < cols; ++i)
            values.push_back(static_cast<double>(
                roundTo(type, asFloat(row[static_cast<std::size_t>(
                                  (i + i / 128) % static_cast<std::int64_t>(row.size()))]))));
    return values;
}

constexpr RowShape kCodedShapes[] = {{1, 1}, {1, 128}, {3, 129}, {7, 33}, {64, 16}, {2, 4096},
    {5, 896}, {33, 136}, {3, 132}, {2, 1004}, {1, 17'000}, {0, 24}};
constexpr RowShape kUnusual = {8, 264};

void addCodedShapes(Table& table, DType type, const RowShape& s)
{
    push(table, "encodeInputs", type, s, "", [=](CaseRun& run) {
        encodeInputs(run, type, s, run.random(type, {s.rows, s.cols}, 3.0).values);
    });
    push(table, "decodeInputs", type, s, "", [=](CaseRun& run) {
        decodeInputs(run, type, s, run.random(type, {s.rows, s.cols}, 3.0).values);
    });
}

} // namespace

void addInputCases(Table& table)
{
    Table lines;
    for (const DType type : kBothTypes) {
        for (const RowShape& s : kCodedShapes)
            addCodedShapes(lines, type, s);
        push(lines, "encodeInputs", type, kUnusual, " unusual", [=](CaseRun& run) {
            encodeInputs(run, type, kUnusual, unusualInputs(type, kUnusual.cols));
        });
        push(lines, "decodeInputs", type, kUnusual, " unusual", [=](CaseRun& run) {
            decodeInputs(run, type, kUnusual, unusualInputs(type, kUnusual.cols));
        });
    }
    table.insert(table.end(), lines.begin(), lines.end());
    addLateStarts(table, lines);
}

} // namespace mr::conformance
