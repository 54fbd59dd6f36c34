// A short last group of a compact state with room for a whole one, so that the code for a whole one
// serves it. The room is zeros, which change no maximum.

#pragma once

#include "core/device/compact_state.h"

#include <cstring>

namespace mr {

struct PaddedGroup {
    std::uint16_t weight[kCompactGroup] = {};
    std::int8_t remainder[kCompactGroup] = {};
    std::int8_t m[kCompactGroup] = {};
    std::uint8_t v[kCompactGroup] = {};
    float mScale = 0.0F;
    float vScale = 0.0F;

    CompactRange range() noexcept
    {
        return {weight, remainder, m, v, &mScale, &vScale, kCompactGroup};
    }

    // From and to the group that begins at `at`, up to the end of `state`.
    void take(const CompactRange& state, std::size_t at) noexcept
    {
        copy(state, at, range(), 0, state.count - at);
    }

    void give(const CompactRange& state, std::size_t at) noexcept
    {
        copy(range(), 0, state, at, state.count - at);
    }

private:
    static void copy(const CompactRange& from, std::size_t first, const CompactRange& to,
        std::size_t at, std::size_t count) noexcept
    {
        std::memcpy(to.weight + at, from.weight + first, count * sizeof(std::uint16_t));
        std::memcpy(to.remainder + at, from.remainder + first, count);
        std::memcpy(to.m + at, from.m + first, count);
        std::memcpy(to.v + at, from.v + first, count);
        to.mScale[at / kCompactGroup] = from.mScale[first / kCompactGroup];
        to.vScale[at / kCompactGroup] = from.vScale[first / kCompactGroup];
    }
};

struct PlainGroup {
    float master[kCompactGroup] = {};
    float m[kCompactGroup] = {};
    float v[kCompactGroup] = {};
};

} // namespace mr
