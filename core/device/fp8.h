// FP8: numbers in eight bits, and the scale that a tensor of them has.
//
//     E4M3   1 sign, 4 exponent (bias 7), 3 mantissa bits    largest 448 = 1.75 * 2^8
//     E5M2   1 sign, 5 exponent (bias 15), 2 mantissa bits   largest 57344 = 1.75 * 2^15
//
// Every such number is exact in BF16. Nothing here makes a NaN or an infinity of eight bits: values
// beyond the largest become the largest, and what is not finite shows in the scale.
//
// Threads  Pure functions. Written so that g++ vectorises loops over them.
// Source   Micikevicius et al., "FP8 Formats for Deep Learning", arXiv 2209.05433, section 3.

#pragma once

#include "core/device/tensor.h"

#include <bit>
#include <cstdint>
#include <limits>

namespace mr {

template <int kMantissaBits, int kExponentBias, int kLargestExponent>
struct Fp8 {
    static constexpr int kMantissa = kMantissaBits;
    static constexpr int kBias = kExponentBias;
    static constexpr int kTop = kLargestExponent; // of the largest number, whose mantissa is 1.75

    // The code of the largest number, its sign 0.
    static constexpr std::uint32_t kLargest =
        ((kTop + kBias) << kMantissa) + (3U << (kMantissa - 2));

    std::uint8_t bits;
};

using E4m3 = Fp8<3, 7, 8>;
using E5m2 = Fp8<2, 15, 15>;

// A choice without a branch: g++ makes one of ?: here, and then vectorises nothing.
constexpr std::uint32_t fp8Choice(bool first, std::uint32_t a, std::uint32_t b) noexcept
{
    const std::uint32_t mask = 0U - static_cast<std::uint32_t>(first);
    return (a & mask) | (b & ~mask);
}

template <typename Code>
constexpr float toFloat(Code code) noexcept requires requires
{
    Code::kMantissa;
}
{
    constexpr std::uint32_t kShift = 23 - Code::kMantissa;
    constexpr auto kRebias = static_cast<std::uint32_t>(127 - Code::kBias) << 23;
    // Half of the step between the smallest numbers' two neighbours: 2^(1 - bias - mantissa).
    constexpr auto kStep =
        std::bit_cast<float>(static_cast<std::uint32_t>(128 - Code::kBias - Code::kMantissa) << 23);
    const std::uint32_t size = code.bits & 0x7FU;
    const float small = static_cast<float>(static_cast<std::int32_t>(size)) * kStep;
    const std::uint32_t value = fp8Choice((size >> Code::kMantissa) == 0,
        std::bit_cast<std::uint32_t>(small), (size << kShift) + kRebias);
    return std::bit_cast<float>(value | (static_cast<std::uint32_t>(code.bits & 0x80U) << 24));
}

// Nearest even; beyond the largest number, the largest.
template <typename Code>
constexpr Code fp8Of(float x) noexcept
{
    constexpr std::uint32_t kShift = 23 - Code::kMantissa;
    constexpr auto kSmallestNormal = static_cast<std::uint32_t>(128 - Code::kBias) << 23;
    // A number of this size has the step of the small codes: adding it rounds to a whole step.
    constexpr auto kRounder = static_cast<std::uint32_t>(151 - Code::kBias - Code::kMantissa) << 23;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t size = bits & 0x7FFFFFFFU;
    const std::uint32_t small =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + std::bit_cast<float>(kRounder)) -
        kRounder;
    const std::uint32_t rounded = size + ((1U << (kShift - 1)) - 1) + ((size >> kShift) & 1U);
    const std::uint32_t normal =
        (rounded >> kShift) - (static_cast<std::uint32_t>(127 - Code::kBias) << Code::kMantissa);
    const std::uint32_t code = fp8Choice(size < kSmallestNormal, small, normal);
    const std::uint32_t kept = code < Code::kLargest ? code : Code::kLargest;
    return {static_cast<std::uint8_t>(kept | ((bits >> 24) & 0x80U))};
}

// The factor that multiplies elements before they are rounded, and its inverse.
struct Fp8Scale {
    float factor = 1.0F;
    float scale = 1.0F;
};

// The largest power of two that keeps the largest element within the format, up to 2^126.
// `largest`: bits of a BF16 without its sign. Not finite: the scale is NaN.
template <typename Code>
constexpr Fp8Scale fp8Scale(std::uint32_t largest) noexcept
{
    if (largest >= 0x7F80U)
        return {1.0F, std::numeric_limits<float>::quiet_NaN()};
    if (largest == 0)
        return {};
    const auto exponent = static_cast<int>(largest >> 7) - 127;
    const bool isBeyond = (largest & 0x7FU) > 0x60U; // a mantissa above 1.75
    const int wanted = Code::kTop - exponent - (isBeyond ? 1 : 0);
    const int power = wanted < 126 ? wanted : 126;
    return {std::bit_cast<float>(static_cast<std::uint32_t>(127 + power) << 23),
        std::bit_cast<float>(static_cast<std::uint32_t>(127 - power) << 23)};
}

// Calls fn with a null pointer of the type that holds these codes.
template <typename F>
void withCode(DType dtype, F&& fn)
{
    if (dtype == DType::E5M2)
        fn(static_cast<E5m2*>(nullptr));
    else
        fn(static_cast<E4m3*>(nullptr));
}

} // namespace mr
