// Numbers of 16 bits: IEEE half precision and bfloat16, from F32 and back.
//
// Rounding is to the nearest, ties to even. No branch depends on a value, so that loops over these
// functions become vector code.
//
// Threads  Pure functions.
// Source   IEEE 754: binary16; reference: export section 6.

#pragma once

#include <bit>
#include <cstdint>

namespace mr {

// `first` where `takesFirst`, else `second`: with a condition, compilers would compute only one of
// them and then make no vector code, since arithmetic of floats may trap.
inline std::uint32_t chosenBits(bool takesFirst, std::uint32_t first, std::uint32_t second) noexcept
{
    const std::uint32_t mask = 0U - static_cast<std::uint32_t>(takesFirst);
    return (first & mask) | (second & ~mask);
}

// Beyond 65519 in size: infinity. A NaN becomes a quiet one.
inline std::uint16_t halfBits(float value) noexcept
{
    constexpr std::uint32_t kInfinity = 0x7F800000; // of F32
    constexpr std::uint32_t kOverflow = 0x477FF000; // 65520
    constexpr std::uint32_t kNormal = 0x38800000;   // 2^-14
    constexpr std::uint32_t kBiases = (127 - 15) << 23;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t size = bits & 0x7FFFFFFFU;
    const std::uint32_t normal = (size - kBiases + 0xFFFU + (size >> 13 & 1U)) >> 13;
    // The last place of numbers in [0.5, 1) is 2^-24, which is that of a subnormal half.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3F000000U;
    const std::uint32_t finite = chosenBits(size < kNormal, subnormal, normal);
    const std::uint32_t infinite = size > kInfinity ? 0x7E00U : 0x7C00U;
    const std::uint32_t half = chosenBits(size >= kOverflow, infinite, finite);
    return static_cast<std::uint16_t>((bits >> 16 & 0x8000U) | half);
}

// Exact.
inline float halfValue(std::uint16_t half) noexcept
{
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
    const std::uint32_t exponent = half >> 10 & 0x1FU;
    const std::uint32_t mantissa = half & 0x3FFU;
    const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    const auto subnormal = std::bit_cast<std::uint32_t>(
        static_cast<float>(static_cast<std::int32_t>(mantissa)) * 0x1p-24F);
    const std::uint32_t size = chosenBits(exponent == 0, subnormal, wide << 23 | mantissa << 13);
    return std::bit_cast<float>(sign | size);
}

inline std::uint16_t bfloatBits(float value) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
    const bool isNan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    return static_cast<std::uint16_t>(isNan ? bits >> 16 | 0x40U : rounded);
}

// Exact.
inline float bfloatValue(std::uint16_t bits) noexcept
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

} // namespace mr
