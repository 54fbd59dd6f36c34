// Blocks of 256 elements in sub-blocks with scales of their own: the K types of ggml.
//
// Threads  Pure functions.
// Source   ggml/src/ggml-common.h (layouts) and ggml-quants.c (values) of llama.cpp.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mr {

inline constexpr std::size_t kSuperBlock = 256; // elements

// Eight scales and eight minima of 6 bits.
using PackedScales = std::array<std::uint8_t, 12>;

struct Q2KBlock {                        // x = d * scale * q - dmin * min
    std::array<std::uint8_t, 16> scales; // of 16 elements: scale in the low nibble, min in the high
    std::array<std::uint8_t, 64> quants; // two bits; a byte holds elements j, j + 32, ... of 128
    std::uint16_t d;
    std::uint16_t dmin;
};

struct Q3KBlock {                        // x = d * (scale - 32) * (q - 4)
    std::array<std::uint8_t, 32> high;   // bit b of byte j: the third bit of element 32 b + j
    std::array<std::uint8_t, 64> quants; // two bits, as above
    std::array<std::uint8_t, 12>
        scales; // sixteen of 6 bits: nibbles of all, then pairs of high bits
    std::uint16_t d;
};

struct Q4KBlock { // x = d * scale * q - dmin * min
    std::uint16_t d;
    std::uint16_t dmin;
    PackedScales scales;                  // of 32 elements
    std::array<std::uint8_t, 128> quants; // a byte holds elements j and j + 32 of 64
};

struct Q5KBlock { // x = d * scale * q - dmin * min
    std::uint16_t d;
    std::uint16_t dmin;
    PackedScales scales;
    std::array<std::uint8_t, 32> high;    // bit b of byte j: the fifth bit of element 32 b + j
    std::array<std::uint8_t, 128> quants; // low nibbles, as above
};

struct Q6KBlock {                       // x = d * scale * (q - 32)
    std::array<std::uint8_t, 128> low;  // a byte holds low nibbles of elements j and j + 64 of 128
    std::array<std::uint8_t, 64> high;  // two bits; a byte holds elements j, j + 32, ... of 128
    std::array<std::int8_t, 16> scales; // of 16 elements
    std::uint16_t d;
};

static_assert(sizeof(Q2KBlock) == 84 && sizeof(Q3KBlock) == 110 && sizeof(Q4KBlock) == 144 &&
              sizeof(Q5KBlock) == 176 && sizeof(Q6KBlock) == 210);

using SuperBlock = std::span<float, kSuperBlock>;
using ConstSuperBlock = std::span<const float, kSuperBlock>;

void decodeBlock(const Q2KBlock& block, SuperBlock out);
void decodeBlock(const Q3KBlock& block, SuperBlock out);
void decodeBlock(const Q4KBlock& block, SuperBlock out);
void decodeBlock(const Q5KBlock& block, SuperBlock out);
void decodeBlock(const Q6KBlock& block, SuperBlock out);

void encodeBlock(ConstSuperBlock values, Q4KBlock& out);
void encodeBlock(ConstSuperBlock values, Q6KBlock& out);

} // namespace mr
