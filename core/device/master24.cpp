#include "core/device/master24.h"

#include "core/device/adamw.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace mr {
namespace {

// Bits of F32 order as their values do within one sign, so the rest is a difference of integers.
// The signs differ only if the master lies beyond a weight of 0: it is less than 2^-133.
std::int32_t restOfBits(std::uint32_t master, std::uint32_t weight) noexcept
{
    using Limits = std::numeric_limits<std::int16_t>;
    const auto rest = static_cast<std::int32_t>(master - weight);
    const std::int32_t above = rest > Limits::min() ? rest : Limits::min();
    const std::int32_t within = above < Limits::max() ? above : Limits::max();
    return ((master ^ weight) >> 31) != 0 ? 0 : within;
}

} // namespace

std::int16_t restOf(float master, std::uint16_t weight) noexcept
{
    return static_cast<std::int16_t>(
        restOfBits(std::bit_cast<std::uint32_t>(master), static_cast<std::uint32_t>(weight) << 16));
}

void encodeMaster24(std::span<const std::uint16_t> high, std::span<const std::int16_t> low,
    std::span<std::uint16_t> weight, std::span<std::int8_t> rest) noexcept
{
    assert(low.size() == high.size() && weight.size() == high.size());
    constexpr std::uint32_t kQuiet = 0x40; // of a BF16
    for (std::size_t i = 0; i < high.size(); ++i) {
        const float master = joinHalves(high[i], low[i]);
        const Master24 split = splitMaster24(master);
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(master);
        const bool isNan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
        weight[i] = isNan ? static_cast<std::uint16_t>(bits >> 16 | kQuiet) : split.weight;
        rest[i] = split.rest;
    }
}

void decodeMaster24(std::span<const std::uint16_t> weight, std::span<const std::int8_t> rest,
    std::span<std::int16_t> low) noexcept
{
    assert(rest.size() == weight.size() && low.size() == weight.size());
    for (std::size_t i = 0; i < weight.size(); ++i)
        low[i] = restOf(joinMaster24({weight[i], rest[i]}), weight[i]);
}

} // namespace mr
