// The running softmax of a warp's query rows in attention's forward pass, and its two products.
// See attention_mma_forward.cu.

#pragma once

#include "gpu/launch.h"
#include "gpu/ops/attention_choice.h"
#include "gpu/ops/attention_tiles.cuh"

#include <cstddef>

namespace mr::gpu {

// Keys of every tile: a row's softmax goes on from tile to tile, so its bits depend on them.
inline constexpr int kForwardKeys = 64;

template <int kDim, int kRows>
struct ForwardTiles {
    static constexpr AttentionTile kTile = attentionTile(AttentionKernel::Forward, kDim, kRows);
    static constexpr int kThreads = kTile.warps * kWarp;
    static constexpr int kWarpRows = kRows / kTile.warps;
    static constexpr int kSlabs = kWarpRows / kSlab;
    static constexpr int kQueries = kRows;
    static constexpr std::size_t kSharedBytes = kTile.sharedBytes; // 16 to 96 KiB
    static_assert(kSharedBytes <= kMaxSharedBytes && kTile.columns == kForwardKeys);
};

// A slab's running softmax. A thread holds rows g and g + 8 (g = lane / 4) of each array, of these
// columns 2 (lane % 4) and + 1 of every 8.
template <int kDim>
struct Softmax {
    float out[kDim / 8][4]; // unnormalised
    float scores[kForwardKeys / 8][4];
    float top[2];   // largest score so far, unscaled
    float total[2]; // this thread's columns only

    __device__ void begin()
    {
        clear(out);
        for (int half = 0; half < 2; ++half) {
            top[half] = __uint_as_float(0xff800000U); // -infinity
            total[half] = 0.0F;
        }
    }

    // `row` is the thread's first row, `key` its first column. visibleFrom is read again each time:
    // few tiles are masked, and every register counts. A row past the last query repeats it, and
    // is not stored.
    __device__ void mask(const AttentionLayout& layout, int row, int key)
    {
        row = min(row, layout.tokens - 1);
        const int second = min(row + 8, layout.tokens - 1);
        const int from[2] = {layout.visibleFrom[row] - key, layout.visibleFrom[second] - key};
        const int last[2] = {row - key, second - key};
#pragma unroll
        for (int n = 0; n < kForwardKeys / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (8 * n + i % 2 > last[i / 2] || 8 * n + i % 2 < from[i / 2])
                    scores[n][i] = __uint_as_float(0xff800000U);
    }

    // Takes a soft-cap into the scores.
    __device__ void bend(const AttentionLayout& layout)
    {
        if (layout.capOverScale == 0.0F)
            return;
#pragma unroll
        for (int n = 0; n < kForwardKeys / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                scores[n][i] = layout.bent(scores[n][i]);
    }

    // Scores become exp2(scale2 (score - new top)); the earlier sums are rescaled to the new
    // top. A row that has seen no key yet keeps -infinity, and 0 stands in for it: else the
    // difference of two infinities would be NaN. The factor is exactly 1 where the top stays, so
    // keys that a row does not see change none of its bits, and blocks may have any rows.
    __device__ void exponentials(int half, float scale2)
    {
        float high = top[half];
#pragma unroll
        for (int n = 0; n < kForwardKeys / 8; ++n)
            high = fmaxf(high, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
        high = fmaxf(high, __shfl_xor_sync(kAllLanes, high, 1));
        high = fmaxf(high, __shfl_xor_sync(kAllLanes, high, 2));
        const float base = isfinite(high) ? high : 0.0F;
        const float shift = -(base * scale2);
        const float factor = exp2Fast((top[half] - base) * scale2);
        float sum = total[half] * factor;
#pragma unroll
        for (int n = 0; n < kForwardKeys / 8; ++n)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
                scores[n][i] = exp2Fast(fmaf(scores[n][i], scale2, shift));
                sum = sum + scores[n][i];
            }
#pragma unroll
        for (int n = 0; n < kDim / 8; ++n) {
            out[n][2 * half] = out[n][2 * half] * factor;
            out[n][2 * half + 1] = out[n][2 * half + 1] * factor;
        }
        top[half] = high;
        total[half] = sum;
    }

    // The sum over the 4 threads that share a row.
    __device__ float rowTotal(int half) const
    {
        float sum = total[half] + __shfl_xor_sync(kAllLanes, total[half], 1);
        return sum + __shfl_xor_sync(kAllLanes, sum, 2);
    }
};

// scores = Q K^T of the warp's rows.
template <int kDim, int kSlabs>
__device__ void multiplyKeys(Softmax<kDim> (&slabs)[kSlabs], const Bf16* query, const Bf16* key,
    const LanePlaces<kDim>& places)
{
#pragma unroll
    for (int s = 0; s < kSlabs; ++s)
        clear(slabs[s].scores);
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
        Fragment a[kSlabs];
#pragma unroll
        for (int s = 0; s < kSlabs; ++s)
            loadLeft<kDim>(a[s], query, s * kSlab, k, places);
#pragma unroll
        for (int n = 0; n < kForwardKeys / 16; ++n) {
            Fragment b;
            loadRightByRows<kDim>(b, key, n * 16, k, places);
#pragma unroll
            for (int s = 0; s < kSlabs; ++s)
                mmaPair(slabs[s].scores[2 * n], slabs[s].scores[2 * n + 1], a[s], b);
        }
    }
}

// out += P V.
template <int kDim, int kSlabs>
__device__ void addValues(
    Softmax<kDim> (&slabs)[kSlabs], const Bf16* value, const LanePlaces<kDim>& places)
{
#pragma unroll
    for (int k = 0; k < kForwardKeys / 16; ++k) {
        Fragment a[kSlabs];
#pragma unroll
        for (int s = 0; s < kSlabs; ++s)
            packLeft(a[s], slabs[s].scores, k);
#pragma unroll
        for (int n = 0; n < kDim / 16; ++n) {
            Fragment b;
            loadRightByColumns<kDim>(b, value, k * 16, n, places);
#pragma unroll
            for (int s = 0; s < kSlabs; ++s)
                mmaPair(slabs[s].out[2 * n], slabs[s].out[2 * n + 1], a[s], b);
        }
    }
}

} // namespace mr::gpu
