#include "core/gguf/small_blocks.h"

#include "core/base/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace mr {

namespace {

constexpr std::size_t kHalf = kSmallBlock / 2;

using Quants = std::array<std::int32_t, kSmallBlock>;

std::uint32_t sizeBits(float value)
{
    return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
}

// The largest size, as bits: unlike numbers their maximum may be taken in any order.
std::uint32_t largestBits(ConstSmallBlock values)
{
    std::uint32_t largest = 0;
    for (const float value : values)
        largest = std::max(largest, sizeBits(value));
    return largest;
}

// The first number of the largest size, with its sign.
float extreme(ConstSmallBlock values)
{
    const std::uint32_t largest = largestBits(values);
    return *std::find_if(
        values.begin(), values.end(), [&](float value) { return sizeBits(value) == largest; });
}

float inverse(float d)
{
    return d == 0.0F ? 0.0F : 1.0F / d;
}

// Towards zero. No quant is as large as 1,000: 0 stands for infinities and NaN.
std::int32_t truncated(float value)
{
    return static_cast<std::int32_t>(std::fabs(value) < 1000.0F ? value : 0.0F);
}

// Halves away from zero. The number added is the one below 0.5, so that no sum rounds up to a half.
std::int32_t rounded(float value)
{
    return truncated(value + std::copysign(0.49999997F, value));
}

// Quants from 0 to 2 * middle - 1 of numbers in [-middle, middle] / scale.
Quants quantsAround(ConstSmallBlock values, float scale, std::int32_t middle)
{
    const float shift = static_cast<float>(middle) + 0.5F;
    Quants quants{};
    for (std::size_t i = 0; i < kSmallBlock; ++i)
        quants[i] = std::min(2 * middle - 1, truncated(values[i] * scale + shift));
    return quants;
}

Nibbles packNibbles(const Quants& quants)
{
    Nibbles nibbles{};
    for (std::size_t j = 0; j < kHalf; ++j)
        nibbles[j] = static_cast<std::uint8_t>((quants[j] & 15) | (quants[j + kHalf] & 15) << 4);
    return nibbles;
}

Quants unpackNibbles(const Nibbles& nibbles)
{
    Quants quants{};
    for (std::size_t j = 0; j < kHalf; ++j) {
        quants[j] = nibbles[j] & 15;
        quants[j + kHalf] = nibbles[j] >> 4;
    }
    return quants;
}

HighBits packHigh(const Quants& quants)
{
    HighBits high{};
    for (std::size_t j = 0; j < kSmallBlock; ++j)
        high[j / 8] = static_cast<std::uint8_t>(high[j / 8] | (quants[j] >> 4 & 1) << j % 8);
    return high;
}

Quants unpackFive(const Nibbles& nibbles, const HighBits& high)
{
    Quants quants = unpackNibbles(nibbles);
    for (std::size_t j = 0; j < kSmallBlock; ++j)
        quants[j] |= (high[j / 8] >> j % 8 & 1) << 4;
    return quants;
}

void scaleAround(const Quants& quants, std::uint16_t d, std::int32_t middle, SmallBlock out)
{
    const float scale = halfValue(d);
    for (std::size_t i = 0; i < kSmallBlock; ++i)
        out[i] = static_cast<float>(quants[i] - middle) * scale;
}

void scaleFrom(const Quants& quants, std::uint16_t d, std::uint16_t least, SmallBlock out)
{
    const float scale = halfValue(d);
    const float first = halfValue(least);
    for (std::size_t i = 0; i < kSmallBlock; ++i)
        out[i] = static_cast<float>(quants[i]) * scale + first;
}

} // namespace

void decodeBlock(const Q4_0Block& block, SmallBlock out)
{
    scaleAround(unpackNibbles(block.quants), block.d, 8, out);
}

void decodeBlock(const Q4_1Block& block, SmallBlock out)
{
    scaleFrom(unpackNibbles(block.quants), block.d, block.least, out);
}

void decodeBlock(const Q5_0Block& block, SmallBlock out)
{
    scaleAround(unpackFive(block.quants, block.high), block.d, 16, out);
}

void decodeBlock(const Q5_1Block& block, SmallBlock out)
{
    scaleFrom(unpackFive(block.quants, block.high), block.d, block.least, out);
}

void decodeBlock(const Q8_0Block& block, SmallBlock out)
{
    const float scale = halfValue(block.d);
    for (std::size_t i = 0; i < kSmallBlock; ++i)
        out[i] = static_cast<float>(block.quants[i]) * scale;
}

void encodeBlock(ConstSmallBlock values, Q4_0Block& out)
{
    const float d = extreme(values) / -8.0F;
    out.d = halfBits(d);
    out.quants = packNibbles(quantsAround(values, inverse(d), 8));
}

void encodeBlock(ConstSmallBlock values, Q5_0Block& out)
{
    const float d = extreme(values) / -16.0F;
    const Quants quants = quantsAround(values, inverse(d), 16);
    out.d = halfBits(d);
    out.high = packHigh(quants);
    out.quants = packNibbles(quants);
}

void encodeBlock(ConstSmallBlock values, Q8_0Block& out)
{
    const float d = std::bit_cast<float>(largestBits(values)) / 127.0F;
    const float scale = inverse(d); // of the F32 d, though the file holds a half
    out.d = halfBits(d);
    for (std::size_t i = 0; i < kSmallBlock; ++i)
        out.quants[i] = static_cast<std::int8_t>(rounded(values[i] * scale));
}

} // namespace mr
