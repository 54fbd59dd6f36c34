// Steps of masters in each of their formats (core/device/light_update.h, MasterPlanes).
//
// Threads  Pure.

#pragma once

#include "core/base/philox.h"
#include "core/device/adamw.h"
#include "core/device/light_update.h"
#include "core/device/master24.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mr::cpu {

// At most so many elements are stepped in one call.
inline constexpr std::int64_t kMasterPiece = 1024;

// The planes of a range of a weight, which begins at element `first` of it.
struct MasterRange {
    TensorView high;
    TensorView low;
    std::int64_t first = 0;
    std::uint64_t key = 0;
    std::uint64_t counter = 0;
};

struct MasterStep {
    float size = 0.0F;
    float decay = 1.0F;

    float operator()(float p, float u) const noexcept { return std::fma(-size, u, p * decay); }
};

// The 16 bits of each element of a weight from `element` on.
inline void fillRandom(
    const MasterRange& range, std::int64_t element, std::int64_t count, std::uint16_t* bits)
{
    constexpr std::int64_t kPerBlock = 8;
    for (std::int64_t i = 0; i < count;) {
        const std::int64_t block = (element + i) / kPerBlock;
        const auto words = philox(range.key, static_cast<std::uint64_t>(block), range.counter);
        std::int64_t k = element + i - block * kPerBlock;
        for (; k < kPerBlock && i < count; ++k, ++i)
            bits[i] = static_cast<std::uint16_t>(
                words[static_cast<std::size_t>(k / 2)] >> (k % 2 == 0 ? 0U : 16U));
    }
}

inline void stepHalves(
    const MasterRange& range, std::int64_t at, std::int64_t count, const float* u, MasterStep step)
{
    auto* high = range.high.as<std::uint16_t>() + at;
    auto* low = range.low.as<std::int16_t>() + at;
    for (std::int64_t i = 0; i < count; ++i) {
        const float p = step(joinHalves(high[i], low[i]), u[i]);
        high[i] = highHalf(p);
        low[i] = lowHalf(p);
    }
}

inline void stepBits24(
    const MasterRange& range, std::int64_t at, std::int64_t count, const float* u, MasterStep step)
{
    auto* weight = range.high.as<std::uint16_t>() + at;
    auto* rest = range.low.as<std::int8_t>() + at;
    for (std::int64_t i = 0; i < count; ++i) {
        const Master24 next = splitMaster24(step(joinMaster24({weight[i], rest[i]}), u[i]));
        weight[i] = next.weight;
        rest[i] = next.rest;
    }
}

inline void stepRandom16(
    const MasterRange& range, std::int64_t at, std::int64_t count, const float* u, MasterStep step)
{
    std::array<std::uint16_t, kMasterPiece> random;
    fillRandom(range, range.first + at, count, random.data());
    auto* weight = range.high.as<std::uint16_t>() + at;
    for (std::int64_t i = 0; i < count; ++i) {
        const float p = step(bf16Value(weight[i]), u[i]);
        weight[i] = static_cast<std::uint16_t>(
            (std::bit_cast<std::uint32_t>(p) + random[static_cast<std::size_t>(i)]) >> 16U);
    }
}

// Elements [at, at + count) of the range, at most kMasterPiece, by u of each.
inline void stepMasters(
    const MasterRange& range, std::int64_t at, std::int64_t count, const float* u, MasterStep step)
{
    constexpr std::array kSteps = {stepHalves, stepBits24, stepRandom16}; // by MasterPlanes
    kSteps[static_cast<std::size_t>(planesOf(range.low))](range, at, count, u, step);
}

} // namespace mr::cpu
