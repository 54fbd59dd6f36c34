// Loads and stores of the two compute types as F32, and the few scalar functions all CPU
// kernels share. Written so that g++ vectorises loops over them.

#pragma once

#include "core/device/tensor.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace mr::cpu {

// A BF16 as it lies in memory. A type of its own, so that no U16 is taken for one.
struct Bf16 {
    std::uint16_t bits;
};

inline float toFloat(float x) noexcept
{
    return x;
}

inline float toFloat(Bf16 x) noexcept
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

template <typename T>
T fromFloat(float x) noexcept;

template <>
inline float fromFloat<float>(float x) noexcept
{
    return x;
}

// Nearest even. A NaN stays one: it is made quiet instead of rounded into an infinity.
template <>
inline Bf16 fromFloat<Bf16>(float x) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40U;
    const bool isNan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    return {static_cast<std::uint16_t>(isNan ? quiet : rounded)};
}

// x after a store as T and a load.
template <typename T>
float rounded(float x) noexcept
{
    return toFloat(fromFloat<T>(x));
}

// exp(x) with a relative error under 2e-7 for x in [-87.3, 88.7]; below it gives 2^-126 or less
// (0 past -103), above infinity. NaN stays NaN. Cody and Waite, "Software manual for the
// elementary functions", chapter 6: x = k ln 2 + r, a polynomial on |r| <= ln 2 / 2 (Taylor to
// r^7: the next term is under 2^-28 relative), then 2^k in two factors, so that results at both
// ends of the range are reached.
inline float expOf(float x) noexcept
{
    constexpr float kLog2e = 1.44269504088896341F;
    constexpr float kLn2High = 0.693359375F; // 9 bits: k times this is exact
    constexpr float kLn2Low = -2.12194440e-4F;
    constexpr float kRoundMagic = 12582912.0F; // 1.5 * 2^23: adding it rounds to an integer
    const float low = x < -110.0F ? -110.0F : x;
    const float clamped = low > 100.0F ? 100.0F : low; // false for NaN, which stays
    const float shifted = std::fma(clamped, kLog2e, kRoundMagic);
    const float k = shifted - kRoundMagic;
    float r = std::fma(-k, kLn2High, clamped);
    r = std::fma(-k, kLn2Low, r);
    float p = 1.0F / 5040.0F;
    p = std::fma(p, r, 1.0F / 720.0F);
    p = std::fma(p, r, 1.0F / 120.0F);
    p = std::fma(p, r, 1.0F / 24.0F);
    p = std::fma(p, r, 1.0F / 6.0F);
    p = std::fma(p, r, 0.5F);
    p = std::fma(p, r, 1.0F);
    p = std::fma(p, r, 1.0F);
    // The low bits of `shifted` are k as an integer.
    const auto n = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted)) - 0x4B400000;
    const std::int32_t half = n >> 1;
    const auto first = std::bit_cast<float>((half + 127) << 23);
    const auto second = std::bit_cast<float>((n - half + 127) << 23);
    return p * first * second;
}

inline float sigmoid(float x) noexcept
{
    return 1.0F / (1.0F + expOf(-x));
}

// tanh(x), relative error under 3e-7. Near 0, where 1 - 2 / (1 + exp(2 x)) would cancel, Lambert's
// continued fraction to its fifth level: past |x| = 0.625 it is off by more than 1e-9.
inline float tanhOf(float x) noexcept
{
    const float square = x * x;
    const float over = std::fma(square + 105.0F, square, 945.0F);
    const float under = std::fma(std::fma(15.0F, square, 420.0F), square, 945.0F);
    const float near = x * (over / under);
    const float size = std::fabs(x);
    const float far = std::copysign(1.0F - 2.0F / (1.0F + expOf(2.0F * size)), x);
    return size < 0.625F ? near : far;
}

// Calls fn with a null pointer of the type that holds `dtype`: f([](auto* tag) ...).
template <typename F>
void withType(DType dtype, F&& fn)
{
    if (dtype == DType::BF16)
        fn(static_cast<Bf16*>(nullptr));
    else
        fn(static_cast<float*>(nullptr));
}

// withType() for the types of two tensors.
template <typename F>
void withTypes(DType first, DType second, F&& fn)
{
    withType(first, [&](auto* a) { withType(second, [&](auto* b) { fn(a, b); }); });
}

} // namespace mr::cpu
