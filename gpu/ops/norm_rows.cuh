// Shared by rms_norm.cu and rms_norm_backward.cu: how a row is dealt to the threads of a block.
//
// One block a row. Pack p of a row belongs to thread p % threads. Up to kHeld packs a thread are
// kept in registers between the two passes over a row, enough for a row of 16,384 BF16 or 8,192 F32
// elements. Longer rows, and rows of tensors that do not take packs, are read again.

#pragma once

#include "gpu/ops/packs.cuh"

namespace mr::gpu {

inline constexpr int kNormHeld = 2;
inline constexpr int kMaxNormThreads = 1024;

// Threads of a block for rows of `packs`: as many as hold it, in whole warps.
inline unsigned normThreads(std::int64_t packs, int perThread) noexcept
{
    const std::int64_t warps = (packs + std::int64_t{perThread} * kWarp - 1) / (perThread * kWarp);
    return static_cast<unsigned>(std::clamp<std::int64_t>(warps * kWarp, kWarp, kMaxNormThreads));
}

inline bool normRowIsHeld(std::int64_t packs) noexcept
{
    return packs <= std::int64_t{kMaxNormThreads} * kNormHeld;
}

// Rounds each element as a store as T and a load would.
template <typename T, int kPack>
__device__ void roundTo(float (&x)[kPack])
{
    const auto pack = roundPack<T>(x);
    for (int i = 0; i < kPack; ++i)
        x[i] = toFloat(pack.at[i]);
}

// Factor that multiplies a normed value.
template <typename T>
__device__ float gainOf(T weight, bool onePlus)
{
    return onePlus ? 1.0F + toFloat(weight) : toFloat(weight);
}

} // namespace mr::gpu
