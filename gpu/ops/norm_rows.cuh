// Shared by the norms' kernels: how a row is dealt to the threads of a block, and what is computed
// of one pack.
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

// sum + the squares of x.
template <typename T, int kPack>
__device__ float addSquares(const Pack<T, kPack>& x, float sum)
{
    for (int i = 0; i < kPack; ++i)
        sum = __fmaf_rn(toFloat(x.at[i]), toFloat(x.at[i]), sum);
    return sum;
}

// 1 / sqrt(mean + eps) of a row.
__device__ inline float rstdOf(float squares, std::int64_t cols, float eps)
{
    const float mean = __fdiv_rn(squares, static_cast<float>(cols));
    return __fdiv_rn(1.0F, __fsqrt_rn(mean + eps));
}

template <typename T, int kPack>
__device__ Pack<T, kPack> normPack(
    const Pack<T, kPack>& x, const Pack<T, kPack>& weight, float rstd, bool onePlus)
{
    float out[kPack];
    for (int i = 0; i < kPack; ++i)
        out[i] = toFloat(x.at[i]) * rstd;
    if (!onePlus)
        roundTo<T>(out); // the normed value is stored as T before the product
    for (int i = 0; i < kPack; ++i)
        out[i] = gainOf(weight.at[i], onePlus) * out[i];
    return roundPack<T>(out);
}

// sum + the sum of grad weight x.
template <typename T, int kPack>
__device__ float addTriples(const Pack<T, kPack>& grad, const Pack<T, kPack>& weight,
    const Pack<T, kPack>& x, float sum, bool onePlus)
{
    for (int i = 0; i < kPack; ++i)
        sum = __fmaf_rn(toFloat(grad.at[i]) * gainOf(weight.at[i], onePlus), toFloat(x.at[i]), sum);
    return sum;
}

// mean(g w n) of a row, n = x rstd, of its triples' sum.
__device__ inline float meanOfTriples(float triples, float rstd, std::int64_t cols)
{
    return __fdiv_rn(triples * rstd, static_cast<float>(cols));
}

// g w - n mean of one element: the gradient of x, over rstd.
template <typename T>
__device__ float innerGradient(T grad, T weight, T x, float rstd, float mean, bool onePlus)
{
    const float normed = toFloat(x) * rstd;
    return __fmaf_rn(toFloat(grad), gainOf(weight, onePlus), -(normed * mean));
}

// gradWeight (cols) (+)= the rows of partial (blocks, cols) in order; does nothing where gradWeight
// has no data. In rms_norm_backward.cu.
Status joinNormPartials(
    const TensorView& partial, const TensorView& gradWeight, bool accumulate, cudaStream_t stream);

} // namespace mr::gpu
