// Shared by forward and backward attention: geometry, segments, and the masked score tile.

#pragma once

#include "core/device/cpu/ops/gemm_kernel.h"
#include "core/device/cpu/ops/number.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mr::cpu {

inline constexpr std::int64_t kKeyBlock = 64;
inline constexpr std::int64_t kQueryBlock = 96; // a multiple of both kernels' row counts

struct AttentionShape {
    std::int64_t tokens = 0;
    std::int64_t heads = 0;
    std::int64_t kvHeads = 0;
    std::int64_t headDim = 0;

    std::int64_t group() const noexcept { return heads / kvHeads; }

    std::int64_t rowLength() const noexcept { return (heads + 2 * kvHeads) * headDim; }

    std::int64_t padded() const noexcept { return paddedToPanel(headDim); }

    std::int64_t keyColumn(std::int64_t kvHead) const noexcept
    {
        return (heads + kvHead) * headDim;
    }

    std::int64_t valueColumn(std::int64_t kvHead) const noexcept
    {
        return (heads + kvHeads + kvHead) * headDim;
    }
};

// Turns a dot product into a score: scales it, and with a cap presses it into (-cap, cap).
struct ScoreRule {
    float scale = 0.0F;
    float cap = 0.0F; // 0: none

    template <bool kCapped>
    float score(float dot) const noexcept
    {
        return kCapped ? cap * tanhOf(dot * scale / cap) : dot * scale;
    }

    // d(score) / d(dot), of a score.
    template <bool kCapped>
    float slope(float score) const noexcept
    {
        if constexpr (!kCapped)
            return scale;
        const float t = score / cap;
        return scale * std::fma(-t, t, 1.0F);
    }
};

// Rows [first, end) that see nothing before `segment`.
struct QueryBlock {
    std::int64_t segment = 0;
    std::int64_t first = 0;
    std::int64_t end = 0;
};

// Appends the first rows of all segments, descending: row s starts one if no row from s on
// sees a row before s.
inline void findSegments(
    const std::int32_t* visibleFrom, std::int64_t tokens, std::vector<std::int64_t>& starts)
{
    starts.clear();
    std::int64_t least = tokens;
    for (std::int64_t i = tokens; i-- > 0;) {
        least = std::min<std::int64_t>(least, visibleFrom[i]);
        if (least >= i)
            starts.push_back(i);
    }
}

// The first key block (from the segment's start) any of the rows sees.
inline std::int64_t firstVisibleBlock(
    const std::int32_t* visibleFrom, std::int64_t segment, std::int64_t first, std::int64_t end)
{
    const std::int32_t least = *std::min_element(visibleFrom + first, visibleFrom + end);
    return (least - segment) / kKeyBlock;
}

// Keys of the block [key, key + count) that `row` sees: [from, to), relative to `key`.
struct Visible {
    std::int64_t from = 0;
    std::int64_t to = 0;
};

inline Visible visibleKeys(
    std::int64_t row, std::int64_t visibleFrom, std::int64_t key, std::int64_t count) noexcept
{
    Visible v;
    v.from = std::clamp<std::int64_t>(visibleFrom - key, 0, count);
    v.to = std::clamp<std::int64_t>(row + 1 - key, v.from, count);
    return v;
}

} // namespace mr::cpu
