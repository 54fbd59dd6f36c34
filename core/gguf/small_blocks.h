// Blocks of 32 elements with one scale: Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0.
//
// A number that is not finite is encoded as if it were zero, or as any other in its block.
//
// Threads  Pure functions.
// Source   reference: export section 6; Q4_1, Q5_0, Q5_1: ggml/src/ggml-quants.c of llama.cpp.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mr {

inline constexpr std::size_t kSmallBlock = 32; // elements

using Nibbles = std::array<std::uint8_t, 16>; // byte j holds elements j (low) and j + 16
using HighBits = std::array<std::uint8_t, 4>; // bit j of 32: the fifth bit of element j

struct Q4_0Block { // x = d * (q - 8)
    std::uint16_t d;
    Nibbles quants;
};

struct Q4_1Block { // x = d * q + least
    std::uint16_t d;
    std::uint16_t least;
    Nibbles quants;
};

struct Q5_0Block { // x = d * (q - 16)
    std::uint16_t d;
    HighBits high;
    Nibbles quants;
};

struct Q5_1Block { // x = d * q + least
    std::uint16_t d;
    std::uint16_t least;
    HighBits high;
    Nibbles quants;
};

struct Q8_0Block { // x = d * q
    std::uint16_t d;
    std::array<std::int8_t, kSmallBlock> quants;
};

static_assert(sizeof(Q4_0Block) == 18 && sizeof(Q4_1Block) == 20 && sizeof(Q5_0Block) == 22 &&
              sizeof(Q5_1Block) == 24 && sizeof(Q8_0Block) == 34);

using SmallBlock = std::span<float, kSmallBlock>;
using ConstSmallBlock = std::span<const float, kSmallBlock>;

void decodeBlock(const Q4_0Block& block, SmallBlock out);
void decodeBlock(const Q4_1Block& block, SmallBlock out);
void decodeBlock(const Q5_0Block& block, SmallBlock out);
void decodeBlock(const Q5_1Block& block, SmallBlock out);
void decodeBlock(const Q8_0Block& block, SmallBlock out);

void encodeBlock(ConstSmallBlock values, Q4_0Block& out);
void encodeBlock(ConstSmallBlock values, Q5_0Block& out);
void encodeBlock(ConstSmallBlock values, Q8_0Block& out);

} // namespace mr
