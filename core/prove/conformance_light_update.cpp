// lightUpdate. No tolerance: the order of core/device/light_update.h fixes every bit.

#include "core/base/philox.h"
#include "core/device/adamw.h"
#include "core/prove/conformance_counts.h"

#include <algorithm>
#include <bit>

namespace mr::conformance {
namespace {

constexpr std::uint64_t kLightKey = 0x1234'5678'9ABC'DEF0;
constexpr std::uint64_t kLightCounter = 0xFEDC'BA98'7654'3210;

constexpr std::pair<MasterPlanes, const char*> kFormats[] = {{MasterPlanes::Halves, "halves"},
    {MasterPlanes::Bits24, "24 bits"}, {MasterPlanes::Random16, "16 random bits"}};

// Elements [first, first + count) of a weight.
struct LightRange {
    std::int64_t rows, cols, first, count;
};

// Whole weights; ranges that begin inside a row, at multiples of 8, of 4, of neither, some with 7
// elements behind the last pack.
constexpr LightRange kRanges[] = {{1, 1, 0, 1}, {1, 17, 0, 17}, {3, 7, 0, 21}, {3, 7, 5, 11},
    {64, 256, 0, 16'384}, {65, 257, 0, 16'705}, {65, 257, 300, 5'000}, {130, 520, 528, 5'007},
    {130, 520, 524, 4'100}, {130, 520, 523, 4'099}, {130, 520, 60'000, 7'600}, {64, 256, 8, 1'007},
    {9, 64, 40, 15}, {9, 64, 16, 7}, {3, 7, 9, 0}};

// A master as its planes.
struct Planes {
    std::uint16_t high = 0;
    int low = 0;
};

// 2 to the exponent of a BF16, at least 2^-126.
float unitInOrder(float weight)
{
    return std::ldexp(1.0F, weight == 0.0F ? -126 : std::max(-126, std::ilogb(weight)));
}

std::uint16_t upperHalf(float x)
{
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
}

float fromUpper(std::uint16_t high)
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(high) << 16);
}

std::uint32_t randomOf(std::int64_t element)
{
    const auto words = philox(kLightKey, static_cast<std::uint64_t>(element / 8), kLightCounter);
    const std::uint32_t word = words[static_cast<std::size_t>(element % 8 / 2)];
    return element % 2 == 0 ? word & 0xFFFFU : word >> 16;
}

Planes planesOf(MasterPlanes format, float p, std::uint32_t random)
{
    if (format == MasterPlanes::Halves)
        return {highHalf(p), lowHalf(p)};
    if (format == MasterPlanes::Random16)
        return {upperHalf(std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + random)), 0};
    const float weight = roundToBf16(p);
    const float steps = (p - weight) / unitInOrder(weight) * 32512.0F;
    return {
        upperHalf(weight), static_cast<int>(std::nearbyint(std::clamp(steps, -127.0F, 127.0F)))};
}

float masterOf(MasterPlanes format, Planes planes)
{
    if (format == MasterPlanes::Halves)
        return joinHalves(planes.high, static_cast<std::int16_t>(planes.low));
    const float weight = fromUpper(planes.high);
    if (format == MasterPlanes::Random16)
        return weight;
    return std::fma(
        static_cast<float>(planes.low), unitInOrder(weight) * (1.0F / 32512.0F), weight);
}

// Some of them 0, denormal, large.
std::vector<Planes> somePlanes(CaseRun& run, MasterPlanes format, std::int64_t count)
{
    Values masters = run.random(DType::F32, {count}).values;
    constexpr double kSpecial[] = {0.0, 1e-39, -3e-42, 1e30, -0.0};
    for (std::size_t i = 3, k = 0; k < std::size(kSpecial) && i < masters.size(); i += 7, ++k)
        masters[i] = kSpecial[k];
    std::vector<Planes> planes;
    for (const double master : masters)
        planes.push_back(planesOf(format, asFloat(master), 0));
    return planes;
}

Values plane(const std::vector<Planes>& planes, bool low)
{
    Values values;
    for (const Planes& p : planes)
        values.push_back(low ? static_cast<double>(p.low) : static_cast<double>(p.high));
    return values;
}

Input divisors(CaseRun& run, std::int64_t count)
{
    Values values = run.random(DType::F32, {count}).values;
    for (double& value : values)
        value = static_cast<double>(asFloat(std::abs(value) + 0.125));
    return run.given(DType::F32, {count}, values);
}

// Inputs of an update beside the weight.
struct LightInputs {
    Input grad, rowRoots, columnRoots;
    float size, decay, clipFactor;
    bool hasRoots;
};

std::vector<Planes> updatedInOrder(const std::vector<Planes>& before, MasterPlanes format,
    const LightRange& range, const LightInputs& in)
{
    std::vector<Planes> after;
    for (std::int64_t i = 0; i < range.count; ++i) {
        const std::int64_t element = range.first + i;
        float u = asFloat(in.grad(i)) * in.clipFactor;
        if (in.hasRoots)
            u = u / (asFloat(in.rowRoots(element / range.cols)) *
                        asFloat(in.columnRoots(element % range.cols)));
        const float p = masterOf(format, before[static_cast<std::size_t>(i)]) * in.decay;
        after.push_back(planesOf(format, std::fma(-in.size, u, p), randomOf(element)));
    }
    return after;
}

LightUpdateArgs lightArgs(CaseRun& run, const LightInputs& in, const LightRange& range, Step step)
{
    StepScalars scalars;
    scalars.clipFactor = in.clipFactor;
    scalars.finite = step == Step::NotFinite ? 0 : 1;
    LightUpdateArgs args;
    args.grad = in.grad.view;
    if (in.hasRoots) {
        args.rowRoots = in.rowRoots.view;
        args.columnRoots = in.columnRoots.view;
    }
    args.size = run.given(DType::F32, {1}, {static_cast<double>(in.size)}).view;
    args.scalars = run.given(DType::U8, {sizeof scalars}, bytesOf(scalars)).view;
    args.first = range.first;
    args.cols = range.cols;
    args.decay = 0.9999F;
    args.decayed = step == Step::Decayed;
    args.key = kLightKey;
    args.counter = kLightCounter;
    return args;
}

void lightUpdate(
    CaseRun& run, MasterPlanes format, const LightRange& range, bool hasRoots, Step step)
{
    const std::vector<Planes> before = somePlanes(run, format, range.count);
    const LightInputs in{run.random(DType::F32, {range.count}), divisors(run, range.rows),
        divisors(run, range.cols), 0.13F, step == Step::Decayed ? 0.9999F : 1.0F, 0.7F, hasRoots};
    LightUpdateArgs args = lightArgs(run, in, range, step);
    args.high = run.given(DType::U16, {range.count}, plane(before, false)).view;
    if (format != MasterPlanes::Random16)
        args.low = run.given(format == MasterPlanes::Halves ? DType::I16 : DType::I8, {range.count},
                          plane(before, true))
                       .view;
    run.call(run.ops().lightUpdate(args, run.stream()));
    const std::vector<Planes> want =
        step == Step::NotFinite ? before : updatedInOrder(before, format, range, in);
    run.expectExactly("high", args.high, plane(want, false));
    if (args.low.data)
        run.expectExactly("low", args.low, plane(want, true));
}

void addRangeCases(Table& table, const LightRange& range)
{
    const std::string shape = " (" + std::to_string(range.rows) + ", " +
                              std::to_string(range.cols) + ") from " + std::to_string(range.first);
    for (const auto& [format, name] : kFormats)
        for (const bool hasRoots : {false, true})
            for (const auto& [step, words] : kSteps)
                push(table, "lightUpdate",
                    name + std::string(words) + (hasRoots ? " with roots" : "") + shape,
                    range.count, [=, format = format, step = step](CaseRun& run) {
                        lightUpdate(run, format, range, hasRoots, step);
                    });
}

} // namespace

void addLightUpdateCases(Table& table)
{
    Table late;
    for (const LightRange& range : kRanges) {
        addRangeCases(table, range);
        if (range.cols % 8 == 0 && range.count < 10'000)
            addRangeCases(late, range);
    }
    addLateStarts(table, late);
}

} // namespace mr::conformance
