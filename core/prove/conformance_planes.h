// Masters in each of their formats, by an order of their own, and the ranges of weights that ops
// are tried with that step them.

#pragma once

#include "core/base/philox.h"
#include "core/device/adamw.h"
#include "core/prove/conformance_counts.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

namespace mr::conformance {

inline constexpr std::uint64_t kLightKey = 0x1234'5678'9ABC'DEF0;
inline constexpr std::uint64_t kLightCounter = 0xFEDC'BA98'7654'3210;

inline constexpr std::pair<MasterPlanes, const char*> kMasterFormats[] = {
    {MasterPlanes::Halves, "halves"}, {MasterPlanes::Bits24, "24 bits"},
    {MasterPlanes::Random16, "16 random bits"}};

// Elements [first, first + count) of a weight.
struct LightRange {
    std::int64_t rows, cols, first, count;
};

// Whole weights; ranges that begin inside a row, at multiples of 8, of 4, of neither, some with 7
// elements behind the last pack.
inline constexpr LightRange kLightRanges[] = {{1, 1, 0, 1}, {1, 17, 0, 17}, {3, 7, 0, 21},
    {3, 7, 5, 11}, {64, 256, 0, 16'384}, {65, 257, 0, 16'705}, {65, 257, 300, 5'000},
    {130, 520, 528, 5'007}, {130, 520, 524, 4'100}, {130, 520, 523, 4'099},
    {130, 520, 60'000, 7'600}, {64, 256, 8, 1'007}, {9, 64, 40, 15}, {9, 64, 16, 7}, {3, 7, 9, 0}};

// A master as its planes.
struct Planes {
    std::uint16_t high = 0;
    int low = 0;
};

// 2 to the exponent of a BF16, at least 2^-126.
inline float unitInOrder(float weight)
{
    return std::ldexp(1.0F, weight == 0.0F ? -126 : std::max(-126, std::ilogb(weight)));
}

inline std::uint16_t upperHalf(float x)
{
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
}

inline float fromUpper(std::uint16_t high)
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(high) << 16);
}

inline std::uint32_t randomOf(std::int64_t element)
{
    const auto words = philox(kLightKey, static_cast<std::uint64_t>(element / 8), kLightCounter);
    const std::uint32_t word = words[static_cast<std::size_t>(element % 8 / 2)];
    return element % 2 == 0 ? word & 0xFFFFU : word >> 16;
}

inline Planes planesOf(MasterPlanes format, float p, std::uint32_t random)
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

inline float masterOf(MasterPlanes format, Planes planes)
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
inline std::vector<Planes> somePlanes(CaseRun& run, MasterPlanes format, std::int64_t count)
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

inline Values plane(const std::vector<Planes>& planes, bool low)
{
    Values values;
    for (const Planes& p : planes)
        values.push_back(low ? static_cast<double>(p.low) : static_cast<double>(p.high));
    return values;
}

// The planes in memory of their own, for the arguments of an op.
template <typename Args>
void givePlanes(CaseRun& run, MasterPlanes format, const std::vector<Planes>& planes, Args& args)
{
    const auto count = static_cast<std::int64_t>(planes.size());
    args.high = run.given(DType::U16, {count}, plane(planes, false)).view;
    if (format == MasterPlanes::Random16)
        return;
    const DType type = format == MasterPlanes::Halves ? DType::I16 : DType::I8;
    args.low = run.given(type, {count}, plane(planes, true)).view;
}

template <typename Args>
void expectPlanes(CaseRun& run, const std::vector<Planes>& want, const Args& args)
{
    run.expectExactly("high", args.high, plane(want, false));
    if (args.low.data)
        run.expectExactly("low", args.low, plane(want, true));
}

inline std::string describe(const LightRange& range)
{
    return " (" + std::to_string(range.rows) + ", " + std::to_string(range.cols) + ") from " +
           std::to_string(range.first);
}

} // namespace mr::conformance
