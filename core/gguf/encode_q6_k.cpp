// Q6_K is encoded by search: a scale for each 16 elements, then the scales' own
// scale, then the elements once more by the scales that the file holds.
//
// Every sum is taken in the order of ggml's reference encoder, so that the bytes are its bytes.

#include "core/base/half.h"
#include "core/gguf/k_blocks.h"
#include "core/gguf/nearest_int.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mr {

namespace {

constexpr float kNothing = 1e-15F; // a sub-block of smaller numbers is zero

// Q6_K: x = scale * q, q from -32 to 31.
constexpr std::size_t kSixSub = 16;
constexpr int kSixMiddle = 32;

using SixValues = std::span<const float, kSixSub>;
using SixQuants = std::array<int, kSixSub>;

int sixQuant(float value)
{
    return std::clamp(nearestInt(value), -kSixMiddle, kSixMiddle - 1);
}

// Sums of x^2 x q and x^2 q q. Their quotient is the scale with the least squared error weighted by
// x^2; the first squared, by the second, is what it takes away from the error.
struct SixSums {
    float xq = 0;
    float qq = 0;

    float scale() const { return xq / qq; }
};

SixSums sixSums(SixValues values, float inverse)
{
    SixSums sums;
    for (const float x : values) {
        const auto q = static_cast<float>(sixQuant(inverse * x));
        const float weight = x * x;
        sums.xq += weight * x * q;
        sums.qq += weight * q * q;
    }
    return sums;
}

float extremeOf(std::span<const float> values)
{
    float extreme = 0;
    for (const float x : values)
        if (std::fabs(x) > std::fabs(extreme))
            extreme = x;
    return extreme;
}

// Tries inverse scales that put the extreme at -32, -31.1 ... -32.9.
float searchSixScale(SixValues values, SixQuants& quants)
{
    const float extreme = extremeOf(values);
    quants.fill(-kSixMiddle); // as ggml leaves it
    if (std::fabs(extreme) < kNothing)
        return 0;
    float inverse = -static_cast<float>(kSixMiddle) / extreme;
    const SixSums first = sixSums(values, inverse);
    float scale = first.qq != 0 ? first.scale() : 0;
    float best = scale * first.xq;
    for (int step = -9; step <= 9; ++step) {
        const float tried =
            -(static_cast<float>(kSixMiddle) + 0.1F * static_cast<float>(step)) / extreme;
        const SixSums sums = step == 0 ? SixSums() : sixSums(values, tried);
        if (sums.qq > 0 && sums.xq * sums.xq > best * sums.qq) {
            inverse = tried;
            scale = sums.scale();
            best = scale * sums.xq;
        }
    }
    for (std::size_t i = 0; i < kSixSub; ++i)
        quants[i] = sixQuant(inverse * values[i]);
    return scale;
}

void packSix(const std::array<SixQuants, 16>& subs, Q6KBlock& out)
{
    out.low.fill(0);
    out.high.fill(0);
    for (std::size_t i = 0; i < kSuperBlock; ++i) {
        const int q = subs[i / kSixSub][i % kSixSub] + kSixMiddle;
        const std::size_t half = i / 128;
        const std::size_t within = i % 128;
        std::uint8_t& low = out.low[half * 64 + within % 64];
        std::uint8_t& high = out.high[half * 32 + within % 32];
        low = static_cast<std::uint8_t>(low | (q & 15) << (within < 64 ? 0 : 4));
        high = static_cast<std::uint8_t>(high | q >> 4 << within / 32 * 2);
    }
}

} // namespace

void encodeBlock(ConstSuperBlock values, Q6KBlock& out)
{
    std::array<SixQuants, 16> quants;
    std::array<float, 16> scales{};
    const auto valuesOf = [&](std::size_t sub) {
        return SixValues(values.data() + sub * kSixSub, kSixSub);
    };
    for (std::size_t sub = 0; sub < scales.size(); ++sub)
        scales[sub] = searchSixScale(valuesOf(sub), quants[sub]);
    const float extreme = extremeOf(scales);
    out = {};
    if (std::fabs(extreme) < kNothing)
        return;
    const float inverse = -128.0F / extreme;
    out.d = halfBits(1 / inverse);
    for (std::size_t sub = 0; sub < scales.size(); ++sub) {
        out.scales[sub] =
            static_cast<std::int8_t>(std::min(127, nearestInt(inverse * scales[sub])));
        const float d = halfValue(out.d) * static_cast<float>(out.scales[sub]);
        for (std::size_t i = 0; d != 0 && i < kSixSub; ++i)
            quants[sub][i] = sixQuant(valuesOf(sub)[i] / d);
    }
    packSix(quants, out);
}

} // namespace mr
