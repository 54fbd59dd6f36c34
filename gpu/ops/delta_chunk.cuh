// One chunk and key head of the gated delta rule, backward: shared memory, and products of matrices
// of kDeltaRows rows for its gradients.
//
// A thread has kSumRows rows and kSumColumns columns of a product, kSumLanes columns apart; a warp
// has kWarpSumRows rows. Warps whose rows lie behind the chunk leave them out.
//
// Order    Every sum ascends.

#pragma once

#include "gpu/ops/delta_gradients.cuh"

namespace mr::gpu {

inline constexpr int kSumRows = 4;
inline constexpr int kSumColumns = 4;
inline constexpr int kSumLanes = kDeltaRows / kSumColumns;
inline constexpr int kWarpSumRows = kDeltaRows / kDeltaWarps;
inline constexpr int kValuePiece = kWarp;              // columns that are staged at a time
inline constexpr int kValuePieceRow = kValuePiece + 4; // 16 bytes of eight rows lie in all banks
inline constexpr int kMatrixRow = kDeltaRows + 4;      // rows 4 apart begin 16 banks apart

struct ValuePieces {
    float left[kDeltaRows * kValuePieceRow];
    float right[kDeltaRows * kValuePieceRow];
};

// Row s, column t of a pair is at [s * kMatrixRow + t].
struct ChunkShared {
    union { // in turns
        ValuePieces values;
        float keys[kDeltaRows * kMatrixRow]; // a piece of normed q or k
        float pairs[kDeltaRows * kMatrixRow];
    };
    float scores[kDeltaRows * kMatrixRow];   // D; then D gradOut[s] d[t], s >= t
    float overlaps[kDeltaRows * kMatrixRow]; // D m[s] d[t], s > t
    float queryFactor[kDeltaRows];           // with queryScale()
    float keyFactor[kDeltaRows];
    float decay[kDeltaRows], beta[kDeltaRows], start[kDeltaRows], rest[kDeltaRows];
    float terms[kDeltaRows], ends[kDeltaRows], pairTerms[kDeltaRows];
    float warps[kDeltaWarps];
};

template <typename T>
struct Chunk {
    const DeltaGradients<T>& a;
    ChunkShared& s;
    std::int64_t first; // row
    int count;
    bool hasBefore, hasAfter;
    int head; // a value head at a time

    // No member: registers are all in use.
    __device__ int keyHead() const { return static_cast<int>(blockIdx.y); }
    __device__ float query(int t, int i) const
    {
        const T* row = a.in.mixed + (first + t) * a.in.mixedColumns();
        return toFloat(row[a.in.queryColumn(keyHead()) + i]) * s.queryFactor[t];
    }
    __device__ float key(int t, int i) const
    {
        const T* row = a.in.mixed + (first + t) * a.in.mixedColumns();
        return toFloat(row[a.in.keyColumn(keyHead()) + i]) * s.keyFactor[t];
    }
    __device__ float delta(int t, int c) const
    {
        return s.beta[t] * a.scratch.changes[a.valueAt(first + t, head) + c];
    }
    __device__ float move(int t, int c) const
    {
        return -(s.beta[t] * a.scratch.errors[a.valueAt(first + t, head) + c]);
    }
    __device__ float gradOut(int t, int c) const
    {
        return toFloat(a.gradOut[a.valueAt(first + t, head) + c]);
    }
    __device__ const float* stateBefore() const { return a.borders + a.in.borderOf(first, head); }
    __device__ const float* gradientAfter() const
    {
        return a.scratch.gradBorders + a.in.borderOf(first + count, head);
    }
};

// A thread's place in a product.
struct SumPlace {
    int lane = static_cast<int>(threadIdx.x) % kWarp;
    int warpRow = static_cast<int>(threadIdx.x) / kWarp * kWarpSumRows;
    int row = warpRow + lane / kSumLanes * kSumRows;
    int column = lane % kSumLanes;
};

using ChunkSums = float[kSumRows][kSumColumns];

// fn(sum, row, column) of each of the thread's sums.
template <typename Fn>
__device__ void forSums(ChunkSums& sums, Fn fn)
{
    const SumPlace place;
#pragma unroll
    for (int r = 0; r < kSumRows; ++r)
#pragma unroll
        for (int c = 0; c < kSumColumns; ++c)
            fn(sums[r][c], place.row + r, place.column + c * kSumLanes);
}

__device__ inline void clearSums(ChunkSums& sums)
{
    forSums(sums, [](float& sum, int, int) { sum = 0.0F; });
}

// Adds the product of the staged rows on the left with those on the right, `terms` columns of them
// in packs of 4.
__device__ inline void addStagedValues(ChunkSums& sums, const ValuePieces& values, int terms)
{
    using Four = Pack<float, 4>;
    const SumPlace place;
#pragma unroll 1 // all registers are in use
    for (int i = 0; i < terms; i += 4) {
        Four right[kSumColumns];
#pragma unroll
        for (int c = 0; c < kSumColumns; ++c)
            right[c] =
                loadPack<4>(values.right + (place.column + c * kSumLanes) * kValuePieceRow + i);
#pragma unroll
        for (int r = 0; r < kSumRows; ++r) {
            const Four left = loadPack<4>(values.left + (place.row + r) * kValuePieceRow + i);
#pragma unroll
            for (int c = 0; c < kSumColumns; ++c)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    sums[r][c] = __fmaf_rn(left.at[e], right[c].at[e], sums[r][c]);
        }
    }
}

// Adds left right^T over valueDim: left(t, c) of rows of the chunk, right(i, c) of `rightRows`
// rows, at most kDeltaRows. All threads.
template <typename T, typename Left, typename Right>
__device__ void addProduct(
    ChunkSums& sums, const Chunk<T>& chunk, Left left, int rightRows, Right right)
{
    const SumPlace place;
    const int dim = chunk.a.in.shape.valueDim;
    ValuePieces& values = chunk.s.values;
    for (int piece = 0; piece < dim; piece += kValuePiece) {
        const int c = piece + place.lane;
#pragma unroll 2
        for (int r = 0; r < kWarpSumRows; ++r) {
            const int t = place.warpRow + r;
            const int at = t * kValuePieceRow + place.lane;
            values.left[at] = t < chunk.count && c < dim ? left(t, c) : 0.0F;
            values.right[at] = t < rightRows && c < dim ? right(t, c) : 0.0F;
        }
        __syncthreads();
        if (place.warpRow < chunk.count)
            addStagedValues(sums, values, min(kValuePiece, (dim - piece + 3) / 4 * 4));
        __syncthreads(); // the pieces were read
    }
}

// Elements [piece, piece + kDeltaRows) of at(t, i), normed q or k, to `keys`; all threads, between
// barriers.
template <typename T, typename At>
__device__ void stageKeys(const Chunk<T>& chunk, int piece, At at)
{
    const SumPlace place;
    __syncthreads(); // what lay there was read
#pragma unroll 2
    for (int r = 0; r < kWarpSumRows; ++r)
#pragma unroll
        for (int c = 0; c < kDeltaRows / kWarp; ++c) {
            const int t = place.warpRow + r;
            const int i = place.lane + c * kWarp;
            chunk.s.keys[t * kMatrixRow + i] =
                t < chunk.count && piece + i < chunk.a.in.shape.keyDim ? at(t, piece + i) : 0.0F;
        }
    __syncthreads();
}

// Adds the thread's rows of `matrix`, 0 above its diagonal, times the staged keys.
template <typename T>
__device__ void addMatrixRows(ChunkSums& sums, const Chunk<T>& chunk, const float* matrix)
{
    const SumPlace place;
    if (place.warpRow >= chunk.count)
        return;
    const float* keys = chunk.s.keys + place.column;
    const int terms = min(place.warpRow + kWarpSumRows, (chunk.count + 3) / 4 * 4);
#pragma unroll 1 // all registers are in use
    for (int t = 0; t < terms; t += 4) {
        Pack<float, 4> rows[kSumRows];
#pragma unroll
        for (int r = 0; r < kSumRows; ++r)
            rows[r] = loadPack<4>(matrix + (place.row + r) * kMatrixRow + t);
#pragma unroll
        for (int e = 0; e < 4; ++e)
#pragma unroll
            for (int c = 0; c < kSumColumns; ++c) {
                const float key = keys[(t + e) * kMatrixRow + c * kSumLanes];
#pragma unroll
                for (int r = 0; r < kSumRows; ++r)
                    sums[r][c] = __fmaf_rn(rows[r].at[e], key, sums[r][c]);
            }
    }
}

// Adds the thread's columns of `matrix`, 0 above its diagonal, times the staged keys.
template <typename T>
__device__ void addMatrixColumns(ChunkSums& sums, const Chunk<T>& chunk, const float* matrix)
{
    const SumPlace place;
    const float* keys = chunk.s.keys + place.column;
#pragma unroll 2
    for (int s = place.warpRow; s < chunk.count; ++s) {
        const Pack<float, kSumRows> column =
            loadPack<kSumRows>(matrix + s * kMatrixRow + place.row);
#pragma unroll
        for (int c = 0; c < kSumColumns; ++c) {
            const float key = keys[s * kMatrixRow + c * kSumLanes];
#pragma unroll
            for (int r = 0; r < kSumRows; ++r)
                sums[r][c] = __fmaf_rn(column.at[r], key, sums[r][c]);
        }
    }
}

} // namespace mr::gpu
