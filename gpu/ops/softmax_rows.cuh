// Rows of logits in registers: the softmax of a row, and its gradient, by rounds of packs.
//
// The first pass keeps a running maximum and the sum of exponentials under it in every thread
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), so the logits are
// read once. The gradient needs them again, from the end of the row to its start: registers still
// hold the round that was read last, and the L2 cache what was read shortly before.
//
// Order   The columns of a thread follow from the number of columns and from whether packs fit;
//         then the tree of blockSum().
//
// A thread's state starts at (-infinity, 0). Differences are taken to `shiftOf` the maximum, which
// is 0 while there is none, because infinity minus infinity would be NaN. A NaN logit still makes
// the sum NaN.

#pragma once

#include "gpu/ops/packs.cuh"

#include <cmath>

namespace mr::gpu {

inline constexpr int kMaxThreads = 512;
inline constexpr int kLogitPack = kPackOf<float>;
// Packs of a thread in a round.
inline constexpr int kShortRound = 4;
inline constexpr int kWholeRow = 16;
inline constexpr float kNone = -HUGE_VALF;

// d(softcap(x)) / dx where the logit is softcap(x); 1 without a cap.
__device__ inline float slopeOf(float logit, float inverseCap)
{
    const float t = logit * inverseCap;
    return __fmaf_rn(-t, t, 1.0F);
}

// Sum of exp(x - shiftOf(top)) over the logits so far; top is the largest x.
struct Online {
    float top = kNone;
    float sum = 0.0F;
};

__device__ inline float shiftOf(float top)
{
    return top == kNone ? 0.0F : top;
}

// A thread's packs of one round.
template <int kPack, int kRound>
struct LogitRound {
    Pack<float, kPack> at[kRound];
};

// Where pack `u` of round `round` begins: a block's width from pack u - 1.
template <int kPack, int kRound>
__device__ std::int64_t columnOf(int round, int u)
{
    const std::int64_t width = kRound == kWholeRow ? kMaxThreads : blockDim.x;
    return ((std::int64_t{round} * kRound + u) * width + threadIdx.x) * kPack;
}

// Past the end: kNone.
template <int kPack, int kRound>
__device__ void loadRound(
    const float* row, std::int64_t cols, int round, LogitRound<kPack, kRound>& held)
{
#pragma unroll
    for (int u = 0; u < kRound; ++u) {
        const std::int64_t c = columnOf<kPack, kRound>(round, u);
        if (c < cols)
            held.at[u] = loadPack<kPack>(row + c);
        else
            for (int k = 0; k < kPack; ++k)
                held.at[u].at[k] = kNone;
    }
}

template <int kPack, int kRound>
__device__ void addRound(Online& online, const LogitRound<kPack, kRound>& held)
{
    float top = online.top;
#pragma unroll
    for (int u = 0; u < kRound; ++u)
        for (int k = 0; k < kPack; ++k)
            top = fmaxf(top, held.at[u].at[k]);
    const float shift = shiftOf(top);
    if (top > online.top) { // rare once some hundred logits were seen
        online.sum = online.sum * expf(online.top - shift);
        online.top = top;
    }
#pragma unroll
    for (int u = 0; u < kRound; ++u)
        for (int k = 0; k < kPack; ++k)
            online.sum = online.sum + expf(held.at[u].at[k] - shift);
}

// The maximum of the row and its sum of exponentials, in every thread. `held` keeps the last round.
template <int kPack, int kRound>
__device__ Online readRow(
    const float* row, std::int64_t cols, int rounds, LogitRound<kPack, kRound>& held)
{
    __shared__ float warps[kMaxThreads / kWarp];
    const int thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    Online online;
    for (int round = 0; round < rounds; ++round) {
        loadRound(row, cols, round, held);
        addRound(online, held);
    }
    const float top = blockMax(online.top, warps, thread, threads);
    const float sum = online.sum * expf(online.top - shiftOf(top));
    return {top, blockSum(sum, warps, thread, threads)};
}

template <typename T>
struct Gradient {
    T* row;
    std::int64_t cols;
    std::int64_t target;
    float factor; // scale / sum of exponentials
    float inverseCap;
    float atTarget; // formed in one piece: softmax - 1 would cancel if the first were stored
};

template <typename T, int kPack, int kRound>
__device__ void storeRound(
    const Gradient<T>& to, int round, float top, const LogitRound<kPack, kRound>& held)
{
#pragma unroll
    for (int u = 0; u < kRound; ++u) {
        const std::int64_t c = columnOf<kPack, kRound>(round, u);
        if (c >= to.cols)
            continue;
        float grad[kPack];
        for (int k = 0; k < kPack; ++k) {
            const float logit = held.at[u].at[k];
            grad[k] = to.factor * expf(logit - top) * slopeOf(logit, to.inverseCap);
            grad[k] = c + k == to.target ? to.atTarget : grad[k];
        }
        storePack(to.row + c, roundPack<T>(grad));
    }
}

} // namespace mr::gpu
