// quantize, codeProduct and biasGradient. Codes and scales are compared exactly with rounding in
// double precision; products with double precision over the same codes.

#include "core/prove/conformance_fp8.h"

#include "core/prove/conformance_case.h"
#include "core/prove/conformance_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::conformance {

namespace {

constexpr DType kCodeTypes[] = {DType::E4M3, DType::E5M2};

const char* codeName(DType type) noexcept
{
    return type == DType::E4M3 ? "e4m3" : "e5m2";
}

// 2^power is the largest power of two that keeps `largest` within the format, up to 2^126.
int powerFor(DType type, double largest)
{
    const double most = fp8Format(type).largest;
    int power = -126;
    while (power < 126 && std::ldexp(largest, power + 1) <= most)
        ++power;
    return power;
}

// Kinds of elements that a quantized tensor may have.
enum class Content { Normal, Tiny, Huge, Wide, Zero, NotFinite };

constexpr std::pair<Content, const char*> kContents[] = {{Content::Normal, ""},
    {Content::Tiny, " tiny"}, {Content::Huge, " huge"}, {Content::Wide, " wide"},
    {Content::Zero, " zero"}, {Content::NotFinite, " not finite"}};

Input contentOf(CaseRun& run, Content content, const Dims& dims)
{
    Values values = run.random(DType::BF16, dims).values;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto place = static_cast<int>(i % 61);
        switch (content) {
        case Content::Normal:
        case Content::NotFinite:
            break;
        case Content::Tiny: // below the smallest that a power of two up to 2^126 lifts
            values[i] = std::ldexp(std::round(8.0 * values[i]), -133);
            break;
        case Content::Huge:
            values[i] = std::ldexp(values[i], 124);
            break;
        case Content::Wide: // down to what rounds to 0
            values[i] = std::ldexp(values[i], -place);
            break;
        case Content::Zero:
            values[i] = 0.0;
            break;
        }
    }
    if (content == Content::NotFinite)
        values[values.size() / 2] = std::numeric_limits<double>::quiet_NaN();
    return run.given(DType::BF16, dims, values);
}

void quantize(CaseRun& run, DType type, const Dims& dims, Content content)
{
    const Input x = contentOf(run, content, dims);
    const QuantizeArgs args{x.view, run.blank(type, dims), run.blank(type, {dims[1], dims[0]}),
        run.blank(DType::F32, {1}), run.blank(DType::I32, {kQuantizePartials})};
    run.call(run.ops().quantize(args, run.stream()));
    if (content == Content::NotFinite)
        return run.expectExactly("scale", args.scale, {std::numeric_limits<double>::quiet_NaN()});
    double largest = 0.0;
    for (const double value : x.values)
        largest = std::max(largest, std::abs(value));
    const int power = largest == 0.0 ? 0 : powerFor(type, largest);
    Values codes;
    for (const double value : x.values)
        codes.push_back(roundToFp8(type, std::ldexp(value, power)));
    Values turned(codes.size());
    for (std::int64_t r = 0; r < dims[0]; ++r)
        for (std::int64_t c = 0; c < dims[1]; ++c)
            turned[static_cast<std::size_t>(c * dims[0] + r)] =
                codes[static_cast<std::size_t>(r * dims[1] + c)];
    run.expectExactly("codes", args.codes, codes);
    run.expectExactly("turned", args.turned, turned);
    run.expectExactly("scale", args.scale, {std::ldexp(1.0, -power)});
}

// One of the two results alone.
void quantizeOneWay(CaseRun& run, DType type, const Dims& dims, bool isTurned)
{
    const Input x = run.random(DType::BF16, dims);
    const TensorView both[] = {run.blank(type, dims), run.blank(type, {dims[1], dims[0]})};
    QuantizeArgs args{x.view, both[0], both[1], run.blank(DType::F32, {1}),
        run.blank(DType::I32, {kQuantizePartials})};
    run.call(run.ops().quantize(args, run.stream()));
    const TensorView alone = run.blank(type, isTurned ? Dims{dims[1], dims[0]} : dims);
    args.codes = isTurned ? TensorView{} : alone;
    args.turned = isTurned ? alone : TensorView{};
    run.call(run.ops().quantize(args, run.stream()));
    run.expectSame(isTurned ? "turned" : "codes", alone, both[isTurned ? 1 : 0]);
}

struct CodeShape {
    std::int64_t m, n, k;
};

Input codes(CaseRun& run, DType type, std::int64_t rows, std::int64_t cols)
{
    Values values = run.random(DType::F32, {rows, cols}, 100.0).values;
    for (double& value : values)
        value = roundToFp8(type, value);
    return run.given(type, {rows, cols}, values);
}

// Tensor cores of some cards align the products that they add at once, and the sum so far, with the
// largest of them, and cut off what lies more than 13 bits below it: each may lose 2^-13 of the
// largest. Source: DeepSeek-V3 technical report (arXiv 2412.19437), 3.3.2, which has 32 products at
// once and about 14 bits on an H800.
class CodeDot
{
public:
    void add(double product)
    {
        m_dot.add(product);
        m_largest = std::max({m_largest, std::abs(product), std::abs(m_dot.sum)});
        if (++m_terms == kAtOnce)
            closeGroup();
    }

    // Adds a term in F32, behind the products.
    void addInFull(double term)
    {
        closeGroup();
        m_dot.add(term);
    }

    double sum() const { return m_dot.sum; }

    double tolerance(std::int64_t depth, DType out)
    {
        closeGroup();
        return m_dot.tolerance(depth, out) + m_lost;
    }

private:
    static constexpr int kAtOnce = 32;

    void closeGroup()
    {
        m_lost += std::ldexp(m_largest * (m_terms + 1), -13);
        m_largest = m_terms = 0;
    }

    Dot m_dot;
    double m_largest = 0.0; // of the products at hand and the sums among them
    int m_terms = 0;
    double m_lost = 0.0;
};

void codeProduct(CaseRun& run, DType type, DType out, const CodeShape& s, bool bias)
{
    const Input a = codes(run, type, s.m, s.k);
    const Input b = codes(run, DType::E4M3, s.n, s.k);
    const Input scaleA = run.given(DType::F32, {1}, {0.125});
    const Input scaleB = run.given(DType::F32, {1}, {std::ldexp(1.0, -12)});
    const Input add = bias ? run.random(DType::BF16, {s.n}) : Input{};
    const CodeProductArgs args{
        a.view, b.view, scaleA.view, scaleB.view, add.view, run.blank(out, {s.m, s.n}), false};
    run.call(run.ops().codeProduct(args, run.stream()));
    const double scale = scaleA(0) * scaleB(0);
    Values want;
    Values tolerance;
    for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
            CodeDot dot;
            for (std::int64_t l = 0; l < s.k; ++l)
                dot.add(scale * a(i * s.k + l) * b(j * s.k + l));
            if (bias)
                dot.addInFull(add(j));
            want.push_back(dot.sum());
            tolerance.push_back(dot.tolerance(s.k, out));
        }
    run.expect("out", args.out, want, tolerance);
}

// As addingOnTheFly() of linearBackwardWeight.
void addingCodes(CaseRun& run, DType type, const CodeShape& s)
{
    const Input a = codes(run, type, s.m, s.k);
    const Input b = codes(run, DType::E4M3, s.n, s.k);
    const Input scaleA = run.given(DType::F32, {1}, {0.125});
    const Input scaleB = run.given(DType::F32, {1}, {std::ldexp(1.0, -12)});
    const Input before = run.random(DType::F32, {s.m, s.n});
    const TensorView apart = run.blank(DType::F32, {s.m, s.n});
    CodeProductArgs args{
        a.view, b.view, scaleA.view, scaleB.view, {}, run.blank(DType::F32, {s.m, s.n}), false};
    run.call(run.ops().codeProduct(args, run.stream()));
    run.call(run.ops().add({before.view, args.out, apart}, run.stream()));
    args.out = before.view;
    args.accumulate = true;
    run.call(run.ops().codeProduct(args, run.stream()));
    run.expectSame("out", args.out, apart);
}

// A NaN is a NaN to the end: the update then does nothing.
void productOfNoNumber(CaseRun& run, DType type)
{
    const Input a = codes(run, type, 16, 16);
    const Input b = codes(run, DType::E4M3, 16, 16);
    const Input scaleA = run.given(DType::F32, {1}, {std::numeric_limits<double>::quiet_NaN()});
    const Input scaleB = run.given(DType::F32, {1}, {1.0});
    const CodeProductArgs args{
        a.view, b.view, scaleA.view, scaleB.view, {}, run.blank(DType::BF16, {16, 16}), false};
    run.call(run.ops().codeProduct(args, run.stream()));
    run.expectExactly("out", args.out, Values(256, std::numeric_limits<double>::quiet_NaN()));
}

void biasGradient(CaseRun& run, DType type, const Dims& dims, bool accumulate)
{
    const Input gradOut = run.random(type, dims);
    const Input before = run.random(DType::F32, {dims[1]});
    const BiasGradientArgs args{gradOut.view, before.view, accumulate};
    run.call(run.ops().biasGradient(args, run.stream()));
    Values want;
    Values tolerance;
    for (std::int64_t o = 0; o < dims[1]; ++o) {
        Dot dot;
        for (std::int64_t t = 0; t < dims[0]; ++t)
            dot.add(gradOut(t * dims[1] + o));
        if (accumulate)
            dot.add(before(o));
        want.push_back(dot.sum);
        tolerance.push_back(dot.tolerance(dims[0], DType::F32));
    }
    run.expect("gradBias", args.gradBias, want, tolerance);
}

void addQuantizeCases(Table& table, DType type)
{
    // One block, edges of tiles both ways, more elements than partial results take at once.
    for (const Dims& dims :
        {Dims{16, 16}, Dims{64, 48}, Dims{80, 160}, Dims{16, 4096}, Dims{272, 1040}}) {
        const std::string shape =
            fmt::format("quantize {} ({}, {})", codeName(type), dims[0], dims[1]);
        for (const auto& [content, words] : kContents)
            table.push_back({"quantize", shape + words,
                [=, content = content](CaseRun& run) { quantize(run, type, dims, content); }});
        for (const bool isTurned : {false, true})
            table.push_back({"quantize", shape + (isTurned ? " turned alone" : " codes alone"),
                [=](CaseRun& run) { quantizeOneWay(run, type, dims, isTurned); }});
    }
}

void addProductCases(Table& table, DType type)
{
    for (const CodeShape& s :
        {CodeShape{16, 16, 16}, CodeShape{64, 48, 80}, CodeShape{272, 96, 160}}) {
        const auto name = [&](const char* more) {
            return fmt::format(
                "codeProduct {} ({}, {}, {}){}", codeName(type), s.m, s.n, s.k, more);
        };
        for (const bool bias : {false, true})
            table.push_back({"codeProduct", name(bias ? " bias" : ""),
                [=](CaseRun& run) { codeProduct(run, type, DType::BF16, s, bias); }});
        table.push_back({"codeProduct", name(" to f32"),
            [=](CaseRun& run) { codeProduct(run, type, DType::F32, s, false); }});
        table.push_back({"codeProduct", name(" adding on the fly"),
            [=](CaseRun& run) { addingCodes(run, type, s); }});
    }
    table.push_back({"codeProduct", fmt::format("codeProduct {} not finite", codeName(type)),
        [=](CaseRun& run) { productOfNoNumber(run, type); }});
}

} // namespace

void addFp8Cases(Table& table)
{
    for (const DType type : kCodeTypes) {
        addQuantizeCases(table, type);
        addProductCases(table, type);
    }
    for (const DType type : kBothTypes)
        for (const Dims& dims : {Dims{1, 1}, Dims{65, 7}, Dims{200, 70}, Dims{64, 64}})
            for (const bool accumulate : {false, true})
                table.push_back({"biasGradient",
                    fmt::format("biasGradient {} ({}, {}){}", typeName(type), dims[0], dims[1],
                        accumulate ? " accumulate" : ""),
                    [=](CaseRun& run) { biasGradient(run, type, dims, accumulate); }});
}

} // namespace mr::conformance
