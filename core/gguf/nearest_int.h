// The rounding of ggml's K encoders.
//
// Threads  Pure.
// Source   ggml/src/ggml-quants.c of llama.cpp: nearest_int.

#pragma once

#include <bit>
#include <cstdint>

namespace mr {

// Ties to even. Numbers of 2^22 and more give what ggml gives, and no more sense.
inline int nearestInt(float value) noexcept
{
    constexpr float kOneAndAHalf = 12582912.0F; // times 2^23: its last place is 1
    const auto bits = std::bit_cast<std::int32_t>(value + kOneAndAHalf);
    return (bits & 0x7FFFFF) - 0x400000;
}

} // namespace mr
