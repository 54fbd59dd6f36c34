// A master weight in 24 bits: its BF16, and 8 bits of the rest. The arithmetic of its planes, one
// element at a time; core/device/compact_state.h has it beside compact moments.
//
//     weight = master as BF16, nearest even
//     rest   = round((master - weight) * (1 / unit(weight)) * 32512), within -127 and 127
//     master = fma(rest, unit(weight) / 32512, weight)               32512 = 127 * 256
//
// unit(w) is 2 to the exponent of w, at least 2^-126, so that the rest counts 127ths of half a unit
// in the last place.
//
// Threads  Pure. Loops over them vectorise.
// Errors   none. splitMaster24() keeps no value that is not finite; encodeMaster24() keeps a NaN.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace mr {

struct Master24 {
    std::uint16_t weight = 0;
    std::int8_t rest = 0;
};

inline float bf16Value(std::uint16_t bits) noexcept
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The nearest BF16, ties to even. Precondition: not a NaN.
inline std::uint16_t bf16Bits(float value) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Bits of unit(w), for the bits of a weight as F32.
inline std::uint32_t exponentUnitBits(std::uint32_t weight) noexcept
{
    constexpr std::uint32_t kLeast = 0x00800000U; // 2^-126
    const std::uint32_t exponent = weight & 0x7F800000U;
    return exponent > kLeast ? exponent : kLeast;
}

inline float joinMaster24(Master24 halves) noexcept
{
    const std::uint32_t weight = static_cast<std::uint32_t>(halves.weight) << 16;
    const float step = std::bit_cast<float>(exponentUnitBits(weight)) * (1.0F / 32512.0F);
    return std::fma(static_cast<float>(halves.rest), step, std::bit_cast<float>(weight));
}

inline Master24 splitMaster24(float master) noexcept
{
    constexpr float kToInteger = 12582912.0F; // 1.5 * 2^23: adding it rounds to nearest even
    const std::uint32_t upper = static_cast<std::uint32_t>(bf16Bits(master)) << 16;
    // 1 / unit, exact; 0 from 2^127, where it would be a denormal.
    const auto inverse = std::bit_cast<float>((254U << 23) - exponentUnitBits(upper));
    const float steps = (master - std::bit_cast<float>(upper)) * inverse * 32512.0F;
    const float above = steps > -127.0F ? steps : -127.0F;
    const float within = above < 127.0F ? above : 127.0F;
    const auto rounded =
        std::bit_cast<std::int32_t>(within + kToInteger) - std::bit_cast<std::int32_t>(kToInteger);
    return {bf16Bits(master), static_cast<std::int8_t>(rounded)};
}

// From F32 halves (core/device/adamw.h) to the planes; all of the same length. They are those of
// compact state with moments of zero.
void encodeMaster24(std::span<const std::uint16_t> high, std::span<const std::int16_t> low,
    std::span<std::uint16_t> weight, std::span<std::int8_t> rest) noexcept;

// The low halves beside weights as high ones: the rest of the decoded F32 master. So BF16 weights
// are saved as forward reads them. The rest may exceed 16 bits by the codec's rounding (127 stands
// for the tie between two BF16): then the nearest value that halves can hold is taken.
void decodeMaster24(std::span<const std::uint16_t> weight, std::span<const std::int8_t> rest,
    std::span<std::int16_t> low) noexcept;

// The low half beside `weight` for a high one: the nearest there is.
std::int16_t restOf(float master, std::uint16_t weight) noexcept;

} // namespace mr
