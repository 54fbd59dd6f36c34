// Sums over a vector by one block, in the order of core/device/light_update.h.

#pragma once

#include "gpu/ops/sum_tree.cuh"

#include <algorithm>

namespace mr::gpu {

// The plain sum of a vector, for sumAsRow().
struct VectorSum {
    const float* values;

    using Held = float;

    __device__ Held load(std::int64_t at) const { return values[at]; }
    __device__ void add(float (&lanes)[1], Held held) const { lanes[0] = lanes[0] + held; }
};

// Threads of the one block that sums a vector: whole warps.
inline unsigned vectorThreads(std::int64_t count) noexcept
{
    return std::max(sumThreads(count, 1), static_cast<unsigned>(kWarp));
}

} // namespace mr::gpu
