#include "core/gguf/k_blocks.h"

#include "core/base/half.h"
#include "core/gguf/packed_scales.h"

namespace mr {

namespace {

constexpr std::size_t kHalfBlock = 128; // elements whose two bits share 32 bytes
constexpr std::size_t kLane = 32;       // elements that lie in consecutive bytes

// Scale `index` of a Q3_K block, from -32 to 31.
int q3Scale(const std::array<std::uint8_t, 12>& scales, std::size_t index)
{
    const int low = scales[index % 8] >> (index < 8 ? 0 : 4) & 15;
    const int high = scales[8 + index % 4] >> index / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

// Two bits of element `at` of a block.
int pairAt(const std::array<std::uint8_t, 64>& pairs, std::size_t at)
{
    const std::size_t within = at % kHalfBlock;
    return pairs[at / kHalfBlock * kLane + within % kLane] >> within / kLane * 2 & 3;
}

// Four bits of element `at` of a block whose bytes hold elements j and j + 32 of 64.
int nibbleAt(const std::array<std::uint8_t, 128>& nibbles, std::size_t at)
{
    return nibbles[at / 64 * kLane + at % kLane] >> (at / kLane % 2 * 4) & 15;
}

} // namespace

void decodeBlock(const Q2KBlock& block, SuperBlock out)
{
    const float d = halfValue(block.d);
    const float dmin = halfValue(block.dmin);
    for (std::size_t sub = 0; sub < 16; ++sub) {
        const float scale = d * static_cast<float>(block.scales[sub] & 15);
        const float least = dmin * static_cast<float>(block.scales[sub] >> 4);
        for (std::size_t i = sub * 16; i < (sub + 1) * 16; ++i)
            out[i] = scale * static_cast<float>(pairAt(block.quants, i)) - least;
    }
}

void decodeBlock(const Q3KBlock& block, SuperBlock out)
{
    const float d = halfValue(block.d);
    for (std::size_t sub = 0; sub < 16; ++sub) {
        const float scale = d * static_cast<float>(q3Scale(block.scales, sub));
        for (std::size_t i = sub * 16; i < (sub + 1) * 16; ++i) {
            const int high = block.high[i % kLane] >> i / kLane & 1;
            const int q = pairAt(block.quants, i) + high * 4 - 4;
            out[i] = scale * static_cast<float>(q);
        }
    }
}

void decodeBlock(const Q4KBlock& block, SuperBlock out)
{
    const float d = halfValue(block.d);
    const float dmin = halfValue(block.dmin);
    for (std::size_t sub = 0; sub < 8; ++sub) {
        const ScaleAndMin packed = unpackScale(block.scales, sub);
        const float scale = d * static_cast<float>(packed.scale);
        const float least = dmin * static_cast<float>(packed.min);
        for (std::size_t i = sub * kLane; i < (sub + 1) * kLane; ++i)
            out[i] = scale * static_cast<float>(nibbleAt(block.quants, i)) - least;
    }
}

void decodeBlock(const Q5KBlock& block, SuperBlock out)
{
    const float d = halfValue(block.d);
    const float dmin = halfValue(block.dmin);
    for (std::size_t sub = 0; sub < 8; ++sub) {
        const ScaleAndMin packed = unpackScale(block.scales, sub);
        const float scale = d * static_cast<float>(packed.scale);
        const float least = dmin * static_cast<float>(packed.min);
        for (std::size_t i = sub * kLane; i < (sub + 1) * kLane; ++i) {
            const int high = block.high[i % kLane] >> sub & 1;
            const int q = nibbleAt(block.quants, i) | high << 4;
            out[i] = scale * static_cast<float>(q) - least;
        }
    }
}

void decodeBlock(const Q6KBlock& block, SuperBlock out)
{
    const float d = halfValue(block.d);
    for (std::size_t sub = 0; sub < 16; ++sub) {
        const float scale = d * static_cast<float>(block.scales[sub]);
        for (std::size_t i = sub * 16; i < (sub + 1) * 16; ++i) {
            const std::size_t within = i % kHalfBlock;
            const std::uint8_t byte = block.low[i / kHalfBlock * 64 + within % 64];
            const int low = byte >> (within < 64 ? 0 : 4) & 15;
            const int q = (low | pairAt(block.high, i) << 4) - 32;
            out[i] = scale * static_cast<float>(q);
        }
    }
}

} // namespace mr
