// Inputs of blocks as they wait for backward: 8-bit codes, with one scale for every 128 columns of
// a row.
//
// a is the largest |x| of a row's group of 128 columns:
//     scale = a / 127;   code = x * (127 / a) rounded to a whole number, nearest even
//     x'    = code * scale, rounded to the type of x
// |code| is at most 127, because a * (127 / a) rounds to 127. A group of zeros, or of numbers so
// small that 127 / a is infinite (a below 2^-121), has scale 0 and codes 0. A group with a NaN or
// an infinity has scale NaN and codes 0, so all of it is NaN again. All in F32 with IEEE rounding
// and no sums, so every device gives the same bits.
//
// Threads  Values.
// Units    Elements, and bytes as named.

#pragma once

#include "core/device/tensor.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace mr {

inline constexpr std::int64_t kCodedColumns = 128; // of a group
inline constexpr float kLargestInputCode = 127.0F;

constexpr std::int64_t codedGroups(std::int64_t cols) noexcept
{
    return (cols + kCodedColumns - 1) / kCodedColumns;
}

// Codes and scales of rows, one behind the other; each begins at a multiple of 256 bytes.
struct CodedBytes {
    std::size_t scales = 0; // where they begin
    std::size_t all = 0;
};

constexpr CodedBytes codedBytes(std::int64_t rows, std::int64_t cols) noexcept
{
    constexpr std::size_t kAlign = 256;
    const auto up = [](std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; };
    const std::size_t scales = up(static_cast<std::size_t>(rows * cols));
    return {
        scales, scales + up(sizeof(float) * static_cast<std::size_t>(rows * codedGroups(cols)))};
}

// The factor that multiplies elements before they are rounded, and the one of their codes.
struct InputScale {
    float factor = 0.0F;
    float scale = 0.0F;
};

// `largest`: the bits of a.
constexpr InputScale inputScale(std::uint32_t largest) noexcept
{
    constexpr std::uint32_t kInfinity = 0x7F800000U;
    if (largest >= kInfinity)
        return {0.0F, std::numeric_limits<float>::quiet_NaN()};
    const auto a = std::bit_cast<float>(largest);
    if (largest < 0x03000000U) // 2^-121
        return {};
    return {kLargestInputCode / a, a / kLargestInputCode};
}

struct EncodeInputsArgs {
    TensorView x;      // (T, H), F32 or BF16
    TensorView codes;  // (T, H), I8
    TensorView scales; // (T, codedGroups(H)), F32
};

struct DecodeInputsArgs {
    TensorView codes;  // (T, H), I8
    TensorView scales; // (T, codedGroups(H)), F32
    TensorView out;    // (T, H), F32 or BF16
};

} // namespace mr
