// Q4_K is encoded by search: a scale and a minimum for each 32 elements, then the scales' own
// scale, then the elements once more by the scales that the file holds.
//
// Every sum is taken in the order of ggml's reference encoder, so that the bytes are its bytes.

#include "core/base/half.h"
#include "core/gguf/k_blocks.h"
#include "core/gguf/nearest_int.h"
#include "core/gguf/packed_scales.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mr {

namespace {

// Q4_K: x = scale * q - min, q from 0 to 15, scale and min not negative.
constexpr std::size_t kFourSub = 32;
constexpr int kFourMost = 15;

using FourValues = std::span<const float, kFourSub>;
using FourQuants = std::array<int, kFourSub>;

struct FourFit {
    float scale = 0;
    float first = 0; // the value of q = 0: -min
};

struct FourSub {
    FourValues values;
    std::array<float, kFourSub> weights{};
    float least = 0; // at most 0
    float most = 0;
    float weightSum = 0;
    float valueSum = 0; // weighted
};

FourSub describe(FourValues values)
{
    float squares = 0;
    for (const float x : values)
        squares += x * x;
    const float mean = std::sqrt(squares / static_cast<float>(kFourSub));
    FourSub sub{values};
    sub.least = sub.most = values[0];
    for (std::size_t i = 0; i < kFourSub; ++i) {
        const float x = values[i];
        sub.weights[i] = mean + std::fabs(x);
        sub.least = x < sub.least ? x : sub.least;
        sub.most = x > sub.most ? x : sub.most;
        sub.weightSum += sub.weights[i];
        sub.valueSum += sub.weights[i] * x;
    }
    sub.least = sub.least > 0 ? 0 : sub.least;
    return sub;
}

FourQuants fourQuants(const FourSub& sub, float first, float inverse)
{
    FourQuants quants;
    for (std::size_t i = 0; i < kFourSub; ++i)
        quants[i] = std::clamp(nearestInt(inverse * (sub.values[i] - first)), 0, kFourMost);
    return quants;
}

float errorOf(const FourSub& sub, const FourQuants& quants, FourFit fit)
{
    float error = 0;
    for (std::size_t i = 0; i < kFourSub; ++i) {
        const float off = fit.scale * static_cast<float>(quants[i]) + fit.first - sub.values[i];
        error += sub.weights[i] * (off * off);
    }
    return error;
}

// The line through (q, x) with the least weighted squares; through 0 if it would begin above.
// False: the quants are all alike.
bool fitLine(const FourSub& sub, const FourQuants& quants, FourFit& fit)
{
    float q1 = 0;
    float q2 = 0;
    float qx = 0;
    for (std::size_t i = 0; i < kFourSub; ++i) {
        const auto q = static_cast<float>(quants[i]);
        const float weight = sub.weights[i];
        q1 += weight * q;
        q2 += weight * q * q;
        qx += weight * q * sub.values[i];
    }
    const float determinant = sub.weightSum * q2 - q1 * q1;
    if (!(determinant > 0))
        return false;
    fit.scale = (sub.weightSum * qx - sub.valueSum * q1) / determinant;
    fit.first = (q2 * sub.valueSum - q1 * qx) / determinant;
    if (fit.first > 0)
        fit = {qx / q2, 0};
    return true;
}

// Tries scales that spread the numbers over 14, 14.1 ... 16 steps, from the best first value so far
// to the greatest.
FourFit searchFourFit(const FourSub& sub, FourQuants& quants)
{
    constexpr int kSteps = 20;
    quants.fill(0);
    if (sub.most == sub.least)
        return {0, sub.least};
    const float inverse = static_cast<float>(kFourMost) / (sub.most - sub.least);
    quants = fourQuants(sub, sub.least, inverse);
    FourFit best{1 / inverse, sub.least};
    float leastError = errorOf(sub, quants, best);
    for (int step = 0; step <= kSteps; ++step) {
        const float steps = -1.0F + 0.1F * static_cast<float>(step) + static_cast<float>(kFourMost);
        const FourQuants tried = fourQuants(sub, best.first, steps / (sub.most - best.first));
        FourFit fit;
        if (!fitLine(sub, tried, fit))
            continue;
        const float error = errorOf(sub, tried, fit);
        if (error < leastError) {
            quants = tried;
            best = fit;
            leastError = error;
        }
    }
    return best;
}

// Six bits of `value`, of which the largest is 63 / inverse.
std::uint8_t sixBits(float inverse, float value)
{
    return std::min<std::uint8_t>(63, static_cast<std::uint8_t>(nearestInt(inverse * value)));
}

using FourFits = std::array<FourFit, 8>;

void packFourScales(const FourFits& fits, Q4KBlock& out)
{
    float mostScale = 0;
    float mostMin = 0;
    for (const FourFit& fit : fits) {
        mostScale = fit.scale > mostScale ? fit.scale : mostScale;
        mostMin = -fit.first > mostMin ? -fit.first : mostMin;
    }
    const float inverseScale = mostScale > 0 ? 63.0F / mostScale : 0;
    const float inverseMin = mostMin > 0 ? 63.0F / mostMin : 0;
    out.d = halfBits(mostScale / 63.0F);
    out.dmin = halfBits(mostMin / 63.0F);
    out.scales.fill(0);
    for (std::size_t sub = 0; sub < fits.size(); ++sub)
        packScale(out.scales, sub,
            {sixBits(inverseScale, fits[sub].scale), sixBits(inverseMin, -fits[sub].first)});
}

void packFour(const std::array<FourQuants, 8>& subs, Q4KBlock& out)
{
    for (std::size_t pair = 0; pair < 4; ++pair)
        for (std::size_t j = 0; j < kFourSub; ++j)
            out.quants[pair * kFourSub + j] =
                static_cast<std::uint8_t>(subs[2 * pair][j] | subs[2 * pair + 1][j] << 4);
}

} // namespace

void encodeBlock(ConstSuperBlock values, Q4KBlock& out)
{
    std::array<FourQuants, 8> quants;
    FourFits fits;
    const auto valuesOf = [&](std::size_t sub) {
        return FourValues(values.data() + sub * kFourSub, kFourSub);
    };
    for (std::size_t sub = 0; sub < fits.size(); ++sub)
        fits[sub] = searchFourFit(describe(valuesOf(sub)), quants[sub]);
    packFourScales(fits, out);
    for (std::size_t sub = 0; sub < fits.size(); ++sub) {
        const ScaleAndMin packed = unpackScale(out.scales, sub);
        const float d = halfValue(out.d) * static_cast<float>(packed.scale);
        const float min = halfValue(out.dmin) * static_cast<float>(packed.min);
        for (std::size_t i = 0; d != 0 && i < kFourSub; ++i)
            quants[sub][i] = std::clamp(nearestInt((valuesOf(sub)[i] + min) / d), 0, kFourMost);
    }
    packFour(quants, out);
}

} // namespace mr
