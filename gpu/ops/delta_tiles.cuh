// A chunk of the gated delta rule in shared memory, for the two kernels that carry a state, or its
// gradient, from chunk to chunk. delta_products.cuh has the products.
//
// A block of kDeltaThreads owns a slice of kDeltaSlice value columns of one value head. `state` is
// (keyDim, kDeltaSlice), `work` (kDeltaRows, kDeltaSlice), and `tile` holds kDeltaRows columns of
// rows of the chunk: pieces of q or k, X or P. A warp has kWarpRows rows of tile and work: it fills
// them, and the products with them are its own. Products that sum over the rows of a chunk read
// those of all warps. A thread has kOwnRows rows and kOwnColumns columns of a product. Warps whose
// rows lie behind the chunk leave its rows out.

#pragma once

#include "gpu/ops/delta_rows.cuh"

namespace mr::gpu {

inline constexpr int kDeltaSlice = kWarp;
inline constexpr int kTileRow = kDeltaRows + 4; // 16 bytes of rows 4 apart lie in other banks
inline constexpr int kWarpRows = kDeltaRows / kDeltaWarps;
inline constexpr int kOwnRows = 4;
inline constexpr int kOwnColumns = 2;

// keyDim in packs of 4; the state is 0 behind keyDim.
__host__ __device__ inline int paddedKeys(const DeltaShape& shape)
{
    return (shape.keyDim + 3) / 4 * 4;
}

// A block's share of the work, and a thread's.
struct DeltaSlice {
    int head, keyHead;
    int firstColumn; // of the slice, within valueDim
    int lane, warp;
    int warpRow;     // first row of the warp
    int row, column; // first ones of the thread

    __device__ DeltaSlice(const DeltaShape& shape, int block)
    {
        const int slices = (shape.valueDim + kDeltaSlice - 1) / kDeltaSlice;
        constexpr int kLanes = kDeltaSlice / kOwnColumns; // of a row
        head = block / slices;
        keyHead = head / (shape.valueHeads / shape.keyHeads);
        firstColumn = block % slices * kDeltaSlice;
        lane = static_cast<int>(threadIdx.x) % kWarp;
        warp = static_cast<int>(threadIdx.x) / kWarp;
        warpRow = warp * kWarpRows;
        row = warpRow + lane / kLanes * kOwnRows;
        column = lane % kLanes * kOwnColumns;
    }
};

struct DeltaShared {
    float* state;
    float* tile;
    float* work;
    float* start; // these five: (kDeltaRows), 0 behind the chunk
    float* rest;
    float* beta;
    float* queryFactor; // with queryScale()
    float* keyFactor;

    static std::int64_t floats(const DeltaShape& shape)
    {
        return std::int64_t{paddedKeys(shape)} * kDeltaSlice +
               kDeltaRows * (kTileRow + kDeltaSlice + 5);
    }

    __device__ DeltaShared(float* at, const DeltaShape& shape)
        : state(at)
        , tile(state + paddedKeys(shape) * kDeltaSlice)
        , work(tile + kDeltaRows * kTileRow)
        , start(work + kDeltaRows * kDeltaSlice)
        , rest(start + kDeltaRows)
        , beta(rest + kDeltaRows)
        , queryFactor(beta + kDeltaRows)
        , keyFactor(queryFactor + kDeltaRows)
    {
    }
};

// One slice and one chunk.
template <typename T>
struct DeltaChunk {
    const DeltaTensors<T>& in;
    const DeltaPairs& pairs;
    const DeltaSlice& slice;
    const DeltaShared& s;
    std::int64_t first; // row
    int count;
    bool goesOn; // another chunk, or a caller, takes the state

    __device__ bool isActive() const { return slice.warpRow < count; }
    __device__ bool hasColumn() const { return slice.firstColumn + slice.lane < in.shape.valueDim; }
    // Decay of the whole chunk.
    __device__ float decay() const { return s.start[count - 1]; }
};

// All threads; others see it behind a barrier.
template <typename T>
__device__ void loadVectors(const DeltaChunk<T>& chunk)
{
    const auto t = static_cast<int>(threadIdx.x);
    if (t >= kDeltaRows)
        return;
    const DeltaPairs& pairs = chunk.pairs;
    const bool isRow = t < chunk.count;
    const std::int64_t row = pairs.rowAt(chunk.first + t, chunk.slice.head);
    const std::int64_t keyRow = pairs.rowAt(chunk.first + t, chunk.slice.keyHead);
    chunk.s.start[t] = isRow ? pairs.start[row] : 0.0F;
    chunk.s.rest[t] = isRow ? pairs.rest[row] : 0.0F;
    chunk.s.beta[t] = isRow ? pairs.beta[row] : 0.0F;
    chunk.s.queryFactor[t] = isRow ? pairs.queryFactor[keyRow] * queryScale(chunk.in.shape) : 0.0F;
    chunk.s.keyFactor[t] = isRow ? pairs.keyFactor[keyRow] : 0.0F;
}

// Normed q or k: where a row's head begins in `mixed`, and the factors of rows.
struct DeltaKeys {
    std::int64_t column;
    const float* factor;
    const float* decay; // another factor, where they are decayed
    bool areDecayed;

    __device__ DeltaKeys times(const float* decays) const { return {column, factor, decays, true}; }
};

template <typename T>
__device__ DeltaKeys queriesOf(const DeltaChunk<T>& chunk)
{
    return {chunk.in.queryColumn(chunk.slice.keyHead), chunk.s.queryFactor, nullptr, false};
}

template <typename T>
__device__ DeltaKeys keysOf(const DeltaChunk<T>& chunk)
{
    return {chunk.in.keyColumn(chunk.slice.keyHead), chunk.s.keyFactor, nullptr, false};
}

// The warp's rows of elements [piece, piece + kDeltaRows); 0 behind the chunk and the head.
template <typename T>
__device__ void stageKeys(const DeltaChunk<T>& chunk, const DeltaKeys& keys, int piece)
{
#pragma unroll 4
    for (int r = 0; r < kWarpRows; ++r) {
        const int t = chunk.slice.warpRow + r;
        const T* row =
            chunk.in.mixed + (chunk.first + t) * chunk.in.mixedColumns() + keys.column + piece;
        const float factor = keys.areDecayed ? keys.factor[t] * keys.decay[t] : keys.factor[t];
#pragma unroll
        for (int c = 0; c < kDeltaRows / kWarp; ++c) {
            const int i = chunk.slice.lane + c * kWarp;
            chunk.s.tile[t * kTileRow + i] = t < chunk.count && piece + i < chunk.in.shape.keyDim
                                                 ? toFloat(row[i]) * factor
                                                 : 0.0F;
        }
    }
}

// The warp's rows of X or P, `matrix` of DeltaPairs; 0 behind the chunk.
template <typename T>
__device__ void stagePairs(const DeltaChunk<T>& chunk, const float* matrix)
{
#pragma unroll 4
    for (int r = 0; r < kWarpRows; ++r) {
        const int t = chunk.slice.warpRow + r;
        const float* row = matrix + chunk.pairs.pairsAt(chunk.first + t, chunk.slice.head);
#pragma unroll
        for (int c = 0; c < kDeltaRows / kWarp; ++c) {
            const int i = chunk.slice.lane + c * kWarp;
            chunk.s.tile[t * kTileRow + i] = t < chunk.count ? row[i] : 0.0F;
        }
    }
}

// The warp's rows of `values`, (rows, ld) from the head's first column on, to `work`.
template <typename T, typename From>
__device__ void stageValues(const DeltaChunk<T>& chunk, const From* values, std::int64_t ld)
{
    const int column = chunk.slice.firstColumn + chunk.slice.lane;
#pragma unroll 4
    for (int r = 0; r < kWarpRows; ++r) {
        const int t = chunk.slice.warpRow + r;
        chunk.s.work[t * kDeltaSlice + chunk.slice.lane] =
            t < chunk.count && chunk.hasColumn() ? toFloat(values[(chunk.first + t) * ld + column])
                                                 : 0.0F;
    }
}

// The warp's rows at `from`, `row` floats apart, times `sign`, to `values` as in stageValues().
template <typename T, typename To>
__device__ void storeValues(const DeltaChunk<T>& chunk, const float* from, int row, To* values,
    std::int64_t ld, float sign = 1.0F)
{
    if (!chunk.hasColumn())
        return;
    const int column = chunk.slice.firstColumn + chunk.slice.lane;
    for (int t = chunk.slice.warpRow; t < min(chunk.slice.warpRow + kWarpRows, chunk.count); ++t)
        values[(chunk.first + t) * ld + column] =
            fromFloat<To>(sign * from[t * row + chunk.slice.lane]);
}

// A head's state (keyDim, valueDim) and the slice of it. A warp has the rows w, w + kDeltaWarps,
// ... `dense` null: zero.
__device__ inline void loadState(
    const DeltaShape& shape, const DeltaSlice& slice, const DeltaShared& s, const float* dense)
{
    const int column = slice.firstColumn + slice.lane;
    for (int i = slice.warp; i < paddedKeys(shape); i += kDeltaWarps)
        s.state[i * kDeltaSlice + slice.lane] =
            dense && i < shape.keyDim && column < shape.valueDim
                ? dense[std::int64_t{i} * shape.valueDim + column]
                : 0.0F;
}

__device__ inline void storeState(
    const DeltaShape& shape, const DeltaSlice& slice, const DeltaShared& s, float* dense)
{
    const int column = slice.firstColumn + slice.lane;
    if (column < shape.valueDim)
        for (int i = slice.warp; i < shape.keyDim; i += kDeltaWarps)
            dense[std::int64_t{i} * shape.valueDim + column] =
                s.state[i * kDeltaSlice + slice.lane];
}

// A block for each slice of each head (y) and each kRecurrentRows rows (x).
inline LaunchShape deltaSlices(const DeltaShape& shape, std::int64_t rows)
{
    const int slices = (shape.valueDim + kDeltaSlice - 1) / kDeltaSlice;
    LaunchShape launch;
    launch.grid = dim3(static_cast<unsigned>(recurrentBlocks(rows)),
        static_cast<unsigned>(shape.valueHeads * slices));
    launch.block = dim3(kDeltaThreads);
    launch.sharedBytes = static_cast<std::size_t>(DeltaShared::floats(shape)) * sizeof(float);
    return launch;
}

} // namespace mr::gpu
