// Tiles of rows in F32 in shared memory for the attention kernels without tensor cores.
//
// A warp computes kRows rows against 32 columns, one a lane: scores are dot products of a row that
// all lanes read with the lane's own row of the other tile; the products with a weight per column
// then run over the 32 columns in order, each lane owning columns lane, lane + 32, ... of the
// result.
//
// Threads  All threads of the block call loadTile; the rest is by warp.

#pragma once

#include "gpu/device_math.cuh"
#include "gpu/ops/attention_layout.cuh"

namespace mr::gpu {

inline constexpr int kFmaWarps = 4;
inline constexpr int kFmaThreads = kFmaWarps * kWarp;
inline constexpr int kColumns = kWarp; // rows of the tile a block walks over

// Floats of a row: 4 more than a multiple of 32, so that 8 lanes that read 16 bytes of 8 rows hit
// all banks.
template <int kDim>
inline constexpr int kFmaStride = kDim + 4;

// Rows [first, first + rows) of the strip; 0 at and past row `end` and column headDim.
template <int kDim, typename T>
__device__ void loadTile(
    float* tile, const Strip<const T>& strip, int first, int rows, int end, int headDim)
{
    for (int i = static_cast<int>(threadIdx.x); i < rows * kDim; i += kFmaThreads) {
        const int row = i / kDim;
        const int column = i % kDim;
        const bool valid = first + row < end && column < headDim;
        tile[row * kFmaStride<kDim> + column] =
            valid ? toFloat(strip.row(first + row)[column]) : 0.0F;
    }
}

// dots[r] = rows[r] . columns[lane], over the first `depth` elements, a multiple of 4.
template <int kDim, int kRows>
__device__ void dotRows(
    float (&dots)[kRows], const float* rows, const float* columns, int depth, int lane)
{
    using Four = Pack<float, 4>;
    const float* column = columns + lane * kFmaStride<kDim>;
#pragma unroll
    for (int r = 0; r < kRows; ++r)
        dots[r] = 0.0F;
    for (int d = 0; d < depth; d += 4) {
        const Four b = *reinterpret_cast<const Four*>(column + d);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const Four a = *reinterpret_cast<const Four*>(rows + r * kFmaStride<kDim> + d);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                dots[r] = fmaf(a.at[i], b.at[i], dots[r]);
        }
    }
}

// sums[r][c] += weights[r][k] * tile[k][lane + 32 c], k ascending. `weights` (kRows, 32) is the
// warp's own.
template <int kDim, int kRows>
__device__ void addWeighted(
    float (&sums)[kRows][kDim / kWarp], const float* weights, const float* tile, int lane)
{
    using Four = Pack<float, 4>;
    for (int k = 0; k < kColumns; k += 4) {
        float values[4][kDim / kWarp];
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int c = 0; c < kDim / kWarp; ++c)
                values[i][c] = tile[(k + i) * kFmaStride<kDim> + lane + c * kWarp];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const Four w = *reinterpret_cast<const Four*>(weights + r * kColumns + k);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int c = 0; c < kDim / kWarp; ++c)
                    sums[r][c] = fmaf(w.at[i], values[i][c], sums[r][c]);
        }
    }
}

template <int kRows, int kCount>
__device__ void clearSums(float (&sums)[kRows][kCount])
{
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int c = 0; c < kCount; ++c)
            sums[r][c] = 0.0F;
}

// Row `r` of sums, times `factor`, to the headDim elements at `to`.
template <int kCount, typename T>
__device__ void storeSums(T* to, const float (&sums)[kCount], float factor, int headDim, int lane)
{
#pragma unroll
    for (int c = 0; c < kCount; ++c)
        if (lane + c * kWarp < headDim)
            to[lane + c * kWarp] = fromFloat<T>(sums[c] * factor);
}

} // namespace mr::gpu
