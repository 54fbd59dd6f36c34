// Sums in the tree of core/device/light_update.h.
//
// Threads  Pure.

#pragma once

#include "core/device/light_update.h"
#include "core/device/ops.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mr::cpu {

inline constexpr std::size_t kMostLevels = 32;

// A sum of blocks: at most one node of each level waits for its
// neighbour.
class BlockTree
{
public:
    void add(float block) noexcept
    {
        for (std::uint64_t index = m_count++; (index & 1U) != 0; index >>= 1U)
            block = m_nodes[--m_waiting] + block;
        m_nodes[m_waiting++] = block;
    }

    float total() const noexcept
    {
        if (m_waiting == 0)
            return 0.0F;
        float sum = m_nodes[m_waiting - 1];
        for (std::size_t node = m_waiting - 1; node > 0; --node)
            sum = m_nodes[node - 1] + sum;
        return sum;
    }

private:
    std::array<float, kMostLevels> m_nodes{};
    std::size_t m_waiting = 0;
    std::uint64_t m_count = 0;
};

inline float joinSumLanes(const float (&lane)[kSumLanes]) noexcept
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// add(lane, j) adds element j to its lane.
template <typename Add>
float sumAsRow(std::int64_t count, Add add)
{
    BlockTree tree;
    for (std::int64_t first = 0; first < count; first += kColumnsOfBlock) {
        const std::int64_t end = std::min(count, first + kColumnsOfBlock);
        float lanes[kSumLanes] = {};
        std::int64_t j = first;
        for (; j + kSumLanes <= end; j += kSumLanes)
            for (std::int64_t lane = 0; lane < kSumLanes; ++lane)
                lanes[lane] = add(lanes[lane], j + lane);
        for (std::int64_t lane = 0; j < end; ++j, ++lane)
            lanes[lane] = add(lanes[lane], j);
        tree.add(joinSumLanes(lanes));
    }
    return tree.total();
}

// Without a view: no clipping.
inline StepScalars readScalars(const TensorView& view)
{
    StepScalars scalars;
    if (view.data)
        std::memcpy(&scalars, view.data, sizeof scalars);
    return scalars;
}

} // namespace mr::cpu
