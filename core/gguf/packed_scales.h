// The eight scales and eight minima of 6 bits that Q4_K and Q5_K pack into 12 bytes.
//
// Bytes 0 to 3 hold scales 0 to 3 and bytes 4 to 7 minima 0 to 3, in their low six bits. Bytes 8 to
// 11 hold the low nibbles of scales and minima 4 to 7, whose two high bits lie in the high bits of
// bytes 0 to 7.
//
// Threads  Pure functions.
// Source   reference: export section 6.

#pragma once

#include "core/gguf/k_blocks.h"

#include <cstddef>
#include <cstdint>

namespace mr {

struct ScaleAndMin {
    std::uint8_t scale; // six bits
    std::uint8_t min;   // six bits
};

inline ScaleAndMin unpackScale(const PackedScales& bytes, std::size_t index) noexcept
{
    if (index < 4)
        return {static_cast<std::uint8_t>(bytes[index] & 63),
            static_cast<std::uint8_t>(bytes[index + 4] & 63)};
    const std::uint8_t low = bytes[index + 4];
    return {static_cast<std::uint8_t>((low & 15) | bytes[index - 4] >> 6 << 4),
        static_cast<std::uint8_t>(low >> 4 | bytes[index] >> 6 << 4)};
}

// `bytes` holds nothing else at the place: zero before the first.
inline void packScale(PackedScales& bytes, std::size_t index, ScaleAndMin value) noexcept
{
    const auto put = [&](std::size_t at, int bits) {
        bytes[at] = static_cast<std::uint8_t>(bytes[at] | bits);
    };
    if (index < 4) {
        put(index, value.scale);
        put(index + 4, value.min);
        return;
    }
    put(index + 4, (value.scale & 15) | (value.min & 15) << 4);
    put(index - 4, value.scale >> 4 << 6);
    put(index, value.min >> 4 << 6);
}

} // namespace mr
