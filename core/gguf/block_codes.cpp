#include "core/gguf/block_codes.h"

#include "core/base/half.h"
#include "core/gguf/k_blocks.h"
#include "core/gguf/small_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

namespace mr {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using Decoder = void (*)(std::span<const std::byte> blocks, std::span<float> out);
using Encoder = void (*)(std::span<const float> values, std::span<std::byte> out);

struct BlockCode {
    GgufType type;
    Decoder decode;
    Encoder encode; // null: none
};

template <typename Block, std::size_t count>
void decodeAll(std::span<const std::byte> blocks, std::span<float> out)
{
    assert(out.size() / count == blocks.size() / sizeof(Block));
    for (std::size_t at = 0; at < out.size() / count; ++at) {
        Block block;
        std::memcpy(&block, blocks.data() + at * sizeof block, sizeof block);
        decodeBlock(block, std::span<float, count>(out.data() + at * count, count));
    }
}

template <typename Block, std::size_t count>
void encodeAll(std::span<const float> values, std::span<std::byte> out)
{
    for (std::size_t at = 0; at < values.size() / count; ++at) {
        Block block;
        encodeBlock(std::span<const float, count>(values.data() + at * count, count), block);
        std::memcpy(out.data() + at * sizeof block, &block, sizeof block);
    }
}

// In groups of a fixed count, of which a compiler makes vector code at -O2.
constexpr std::size_t kGroup = 64;

template <float (*value)(std::uint16_t)>
void decodeWords(std::span<const std::byte> blocks, std::span<float> out)
{
    std::array<std::uint16_t, kGroup> words{};
    std::array<float, kGroup> numbers{};
    for (std::size_t first = 0; first < out.size(); first += kGroup) {
        const std::size_t count = std::min(kGroup, out.size() - first);
        std::memcpy(words.data(), blocks.data() + first * sizeof words[0], count * sizeof words[0]);
        for (std::size_t i = 0; i < kGroup; ++i)
            numbers[i] = value(words[i]);
        std::memcpy(out.data() + first, numbers.data(), count * sizeof numbers[0]);
    }
}

template <std::uint16_t (*word)(float)>
void encodeWords(std::span<const float> values, std::span<std::byte> out)
{
    std::array<float, kGroup> numbers{};
    std::array<std::uint16_t, kGroup> words{};
    for (std::size_t first = 0; first < values.size(); first += kGroup) {
        const std::size_t count = std::min(kGroup, values.size() - first);
        std::memcpy(numbers.data(), values.data() + first, count * sizeof numbers[0]);
        for (std::size_t i = 0; i < kGroup; ++i)
            words[i] = word(numbers[i]);
        std::memcpy(out.data() + first * sizeof words[0], words.data(), count * sizeof words[0]);
    }
}

void decodeFloats(std::span<const std::byte> blocks, std::span<float> out)
{
    if (!out.empty())
        std::memcpy(out.data(), blocks.data(), out.size_bytes());
}

void encodeFloats(std::span<const float> values, std::span<std::byte> out)
{
    if (!values.empty())
        std::memcpy(out.data(), values.data(), values.size_bytes());
}

constexpr BlockCode kCodes[] = {
    {GgufType::F32, decodeFloats, encodeFloats},
    {GgufType::F16, decodeWords<halfValue>, encodeWords<halfBits>},
    {GgufType::BF16, decodeWords<bfloatValue>, encodeWords<bfloatBits>},
    {GgufType::Q4_0, decodeAll<Q4_0Block, 32>, encodeAll<Q4_0Block, 32>},
    {GgufType::Q4_1, decodeAll<Q4_1Block, 32>, nullptr},
    {GgufType::Q5_0, decodeAll<Q5_0Block, 32>, encodeAll<Q5_0Block, 32>},
    {GgufType::Q5_1, decodeAll<Q5_1Block, 32>, nullptr},
    {GgufType::Q8_0, decodeAll<Q8_0Block, 32>, encodeAll<Q8_0Block, 32>},
    {GgufType::Q2_K, decodeAll<Q2KBlock, 256>, nullptr},
    {GgufType::Q3_K, decodeAll<Q3KBlock, 256>, nullptr},
    {GgufType::Q4_K, decodeAll<Q4KBlock, 256>, encodeAll<Q4KBlock, 256>},
    {GgufType::Q5_K, decodeAll<Q5KBlock, 256>, nullptr},
    {GgufType::Q6_K, decodeAll<Q6KBlock, 256>, encodeAll<Q6KBlock, 256>},
};

const BlockCode& codeOf(GgufType type) noexcept
{
    const BlockCode* code = kCodes;
    while (code->type != type)
        ++code;
    return *code;
}

} // namespace

void decodeBlocks(GgufType type, std::span<const std::byte> blocks, std::span<float> out)
{
    codeOf(type).decode(blocks, out);
}

bool canEncodeBlocks(GgufType type) noexcept
{
    return codeOf(type).encode != nullptr;
}

void encodeBlocks(GgufType type, std::span<const float> values, std::span<std::byte> out)
{
    assert(canEncodeBlocks(type));
    codeOf(type).encode(values, out);
}

} // namespace mr
