// Products of matrices in shared memory (delta_tiles.cuh) for a chunk of the gated delta rule.
//
// Order    Every sum ascends, over keyDim or over rows.

#pragma once

#include "gpu/ops/delta_tiles.cuh"

namespace mr::gpu {

using DeltaSums = float[kOwnRows][kOwnColumns];

__device__ inline void clearSums(DeltaSums& sums)
{
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            sums[r][c] = 0.0F;
}

// Adds the thread's rows at `left`, kTileRow apart, times its columns at `right`, kDeltaSlice
// apart: the first `terms` terms in packs of 4.
__device__ inline void addRows(DeltaSums& sums, const float* left, const float* right, int terms)
{
#pragma unroll 2
    for (int k = 0; k < terms; k += 4) {
        Pack<float, kOwnColumns> values[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            values[e] = loadPack<kOwnColumns>(right + (k + e) * kDeltaSlice);
#pragma unroll
        for (int r = 0; r < kOwnRows; ++r) {
            const Pack<float, 4> row = loadPack<4>(left + r * kTileRow + k);
#pragma unroll
            for (int e = 0; e < 4; ++e)
#pragma unroll
                for (int c = 0; c < kOwnColumns; ++c)
                    sums[r][c] = __fmaf_rn(row.at[e], values[e].at[c], sums[r][c]);
        }
    }
}

// Adds the kOwnRows columns at `left` times those at `right`, over rows [begin, end).
__device__ inline void addColumns(
    DeltaSums& sums, const float* left, const float* right, int begin, int end)
{
#pragma unroll 4
    for (int t = begin; t < end; ++t) {
        const Pack<float, kOwnRows> column = loadPack<kOwnRows>(left + t * kTileRow);
        const Pack<float, kOwnColumns> values = loadPack<kOwnColumns>(right + t * kDeltaSlice);
#pragma unroll
        for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
            for (int c = 0; c < kOwnColumns; ++c)
                sums[r][c] = __fmaf_rn(column.at[r], values.at[c], sums[r][c]);
    }
}

// Adds the thread's rows of q or k times the state. A warp with rows.
template <typename T>
__device__ void addKeyRows(DeltaSums& sums, const DeltaChunk<T>& chunk, const DeltaKeys& keys)
{
    const DeltaSlice& slice = chunk.slice;
    const int padded = paddedKeys(chunk.in.shape);
    for (int piece = 0; piece < padded; piece += kDeltaRows) {
        __syncwarp(); // the tile was read
        stageKeys(chunk, keys, piece);
        __syncwarp();
        addRows(sums, chunk.s.tile + slice.row * kTileRow,
            chunk.s.state + piece * kDeltaSlice + slice.column, min(kDeltaRows, padded - piece));
    }
}

// Adds the thread's rows of X or P, whose first ones are staged, times work: terms up to its warp's
// last row. A warp with rows.
template <typename T>
__device__ void addPairRows(DeltaSums& sums, const DeltaChunk<T>& chunk)
{
    const DeltaSlice& slice = chunk.slice;
    addRows(sums, chunk.s.tile + slice.row * kTileRow, chunk.s.work + slice.column,
        min(slice.warpRow + kWarpRows, (chunk.count + 3) / 4 * 4));
}

// Adds the thread's columns of X or P times work: terms from its warp's first row on.
template <typename T>
__device__ void addPairColumns(DeltaSums& sums, const DeltaChunk<T>& chunk)
{
    const DeltaSlice& slice = chunk.slice;
    addColumns(
        sums, chunk.s.tile + slice.row, chunk.s.work + slice.column, slice.warpRow, chunk.count);
}

// The thread's part of rows at `to`, `row` floats apart.
template <typename T>
__device__ void putRows(const DeltaChunk<T>& chunk, float* to, int row, const DeltaSums& sums)
{
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
        stagePack(to + (chunk.slice.row + r) * row + chunk.slice.column,
            Pack<float, kOwnColumns>{{sums[r][0], sums[r][1]}});
}

// B sums, to work.
template <typename T>
__device__ void putScaled(const DeltaChunk<T>& chunk, const DeltaSums& sums)
{
    DeltaSums scaled;
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            scaled[r][c] = chunk.s.beta[chunk.slice.row + r] * sums[r][c];
    putRows(chunk, chunk.s.work, kDeltaSlice, scaled);
}

// The thread's part of state = decay state + keys^T work, of the staged piece.
template <typename T>
__device__ void addStagedKeys(const DeltaChunk<T>& chunk, int piece, float decay)
{
    const DeltaSlice& slice = chunk.slice;
    if (piece + slice.row >= paddedKeys(chunk.in.shape))
        return;
    float* own = chunk.s.state + (piece + slice.row) * kDeltaSlice + slice.column;
    DeltaSums sums;
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r) {
        const auto state = loadPack<kOwnColumns>(own + r * kDeltaSlice);
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            sums[r][c] = decay * state.at[c];
    }
    addColumns(sums, chunk.s.tile + slice.row, chunk.s.work + slice.column, 0, chunk.count);
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
        stagePack(own + r * kDeltaSlice, Pack<float, kOwnColumns>{{sums[r][0], sums[r][1]}});
}

// state = decay state + keys^T work; all threads. Others see it behind a barrier.
template <typename T>
__device__ void updateState(const DeltaChunk<T>& chunk, const DeltaKeys& keys, float decay)
{
    if (!chunk.goesOn)
        return;
    for (int piece = 0; piece < paddedKeys(chunk.in.shape); piece += kDeltaRows) {
        __syncthreads(); // state and tile were read
        if (chunk.isActive())
            stageKeys(chunk, keys, piece);
        __syncthreads();
        addStagedKeys(chunk, piece, decay);
    }
}

} // namespace mr::gpu
