// The written order of compact_state.h once more, one element after the other and by itself: the
// tests and `millrace selftest` hold every fast route against it.
//
// Threads  Pure functions.
// Errors   none. Values are finite.

#pragma once

#include "core/device/compact_state.h"
#include "core/device/master24.h"

#include <algorithm>
#include <cmath>

namespace mr {

// One parameter in F32.
struct CompactValue {
    float p = 0.0F;
    float m = 0.0F;
    float root = 0.0F; // square root of v
};

// Codes that a v above 0 may be stored as. Any is the published rule, kept to show why it is not
// ours.
enum class RootCodes { AtLeastOne, Any };

// 2 to the exponent of `weight`, at least 2^-126.
inline float exponentUnit(float weight) noexcept
{
    return weight == 0.0F ? 0x1p-126F : std::max(0x1p-126F, std::ldexp(1.0F, std::ilogb(weight)));
}

inline CompactValue decodeReference(const CompactRange& s, std::size_t i) noexcept
{
    const std::size_t group = i / kCompactGroup;
    const float weight = bf16Value(s.weight[i]);
    const float step = exponentUnit(weight) * (1.0F / 32512.0F);
    const auto mCode = static_cast<float>(s.m[i]);
    CompactValue value;
    value.p = std::fma(static_cast<float>(s.remainder[i]), step, weight);
    value.m = s.mScale[group] * (mCode / (254.0F - std::fabs(mCode)));
    value.root = static_cast<float>(s.v[i]) * (s.vScale[group] / 255.0F);
    return value;
}

inline int roundedCode(float x, float lowest, float highest) noexcept
{
    return static_cast<int>(std::nearbyint(std::clamp(x, lowest, highest)));
}

inline void encodeReference(const CompactValue& value, const CompactRange& s, std::size_t i,
    RootCodes codes = RootCodes::AtLeastOne) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(value.p);
    s.weight[i] = static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
    const float weight = bf16Value(s.weight[i]);
    const float unit = exponentUnit(weight);
    const float steps = unit < 0x1p127F ? (value.p - weight) / unit * 32512.0F : 0.0F;
    s.remainder[i] = static_cast<std::int8_t>(roundedCode(steps, -127.0F, 127.0F));
    const std::size_t group = i / kCompactGroup;
    const float share = value.m / (s.mScale[group] + std::fabs(value.m));
    s.m[i] = static_cast<std::int8_t>(roundedCode(share * 254.0F, -127.0F, 127.0F));
    const float least = codes == RootCodes::Any ? 0.0F : 1.0F;
    s.v[i] = 0;
    if (value.root > 0.0F)
        s.v[i] = static_cast<std::uint8_t>(
            roundedCode(value.root * (255.0F / s.vScale[group]), least, 255.0F));
}

// The group [first, end) of `values`; values[0] is the first of the range.
inline void encodeReferenceGroup(const CompactValue* values, std::size_t first, std::size_t end,
    const CompactRange& s, RootCodes codes = RootCodes::AtLeastOne) noexcept
{
    float mScale = 1e-12F;
    float vScale = 0.0F;
    for (std::size_t i = first; i < end; ++i) {
        mScale = std::max(mScale, std::fabs(values[i].m));
        vScale = std::max(vScale, values[i].root);
    }
    s.mScale[first / kCompactGroup] = mScale;
    s.vScale[first / kCompactGroup] = vScale;
    for (std::size_t i = first; i < end; ++i)
        encodeReference(values[i], s, i, codes);
}

inline CompactValue updateReference(
    CompactValue x, float grad, const AdamwFactors& f, float clipFactor, bool decayed) noexcept
{
    const float g = grad * clipFactor;
    if (decayed)
        x.p = x.p * f.decay;
    const float oldM = f.beta1 * x.m;
    x.m = std::fma(f.oneMinusBeta1, g, oldM);
    const float oldV = f.beta2 * (x.root * x.root);
    const float scaled = f.oneMinusBeta2 * g;
    x.root = std::sqrt(std::fma(scaled, g, oldV));
    const float quotient = x.m / std::fma(x.root, f.inverseSqrtBias2, f.eps);
    x.p = std::fma(-f.stepSize, quotient, x.p);
    return x;
}

} // namespace mr
