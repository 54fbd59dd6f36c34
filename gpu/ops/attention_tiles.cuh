// Tiles of BF16 rows in shared memory, and the fragments the tensor cores take from them.
//
// A row is cut into chunks of 16 bytes. ldmatrix reads the same chunk of 8 rows at once, which
// all fall on the same banks if a row is a multiple of 128 bytes. So chunk c of row r lies at
// place c ^ flip(r): the 8 rows then hit 8 different groups of banks, for every head_dim, and a
// row takes no padding.
//
// Threads  "warp": all 32 lanes call together.
// Order    Fixed: every sum runs over its depth in ascending order.

#pragma once

#include "gpu/device_math.cuh"
#include "gpu/ops/attention_layout.cuh"

#include <cstdint>

namespace mr::gpu {

inline constexpr int kSlab = 16; // rows of an mma: a warp computes one or two slabs
inline constexpr int kChunk = 8; // BF16 in 16 bytes

// Exponentials are powers of 2: factors of an exponent are multiplied by this beforehand.
inline constexpr float kLog2E = 1.44269504F;

template <int kDim>
struct TileShape {
    static constexpr int kChunks = kDim / kChunk;
    // A row has a multiple of so many chunks, and 8 / kFlips rows lie on different banks as they
    // are.
    static constexpr int kFlips = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : 2;
    static_assert(kDim % 16 == 0);

    __device__ static unsigned flip(unsigned row) { return row % 8 / (8 / kFlips); }

    // Element offset. Only the chunk's part below kFlips changes, so it stays in its row.
    __device__ static unsigned at(unsigned row, unsigned chunk)
    {
        return (row * kChunks + (chunk ^ flip(row))) * kChunk;
    }
};

// Starts copying rows [first, first + kRows) of the strip into `tile`; rows at and past `end`
// become 0. All threads of the block call.
template <int kDim, int kRows, int kThreads>
__device__ void fetchTile(Bf16* tile, const Strip<const Bf16>& strip, int first, int end)
{
    constexpr unsigned kChunks = TileShape<kDim>::kChunks;
    constexpr unsigned kAtOnce = kThreads / kChunks; // rows; the threads left over copy nothing
    const unsigned chunk = threadIdx.x % kChunks;
    unsigned row = threadIdx.x / kChunks;
    if (kThreads % kChunks != 0 && row >= kAtOnce)
        return;
    const Bf16* from = strip.row(first + static_cast<int>(row)) + chunk * kChunk;
    const int rows = end - first;
    // More take all registers of a thread.
    [[maybe_unused]] constexpr int kUnrolled = kThreads < 128 ? 8 : kRows;
#pragma unroll kUnrolled
    for (int i = 0; i < kRows; i += kAtOnce) {
        const bool valid = static_cast<int>(row) < rows;
        if (kRows % kAtOnce == 0 || row < kRows)
            cpAsync16(tile + TileShape<kDim>::at(row, chunk), valid ? from : strip.data, valid);
        row += kAtOnce;
        from += std::int64_t{kAtOnce} * strip.stride;
    }
}

using Fragment = std::uint32_t[4];

// Where a lane's rows for ldmatrix begin, in bytes from a tile's row that is a multiple of 16.
// With the bits of a constant chunk flipped in and constant rows added it is an address.
template <int kDim>
struct LanePlaces {
    using Shape = TileShape<kDim>;

    unsigned byRow;   // matrices 0, 1: rows 0 to 7, 8 to 15; 2, 3: the same of the next chunk
    unsigned byChunk; // matrices 0, 1: rows 0 to 7 of two chunks; 2, 3: rows 8 to 15

    __device__ explicit LanePlaces(unsigned lane)
        : byRow(Shape::at(lane % 16, lane / 16) * sizeof(Bf16))
        , byChunk(Shape::at(lane / 16 * 8 + lane % 8, lane / 8 % 2) * sizeof(Bf16))
    {
    }

    // At the head of a loop: keeps the compiler from computing the address of every fragment
    // ahead of it, which takes more registers than a thread has.
    __device__ void renew()
    {
        byRow = unpredictable(byRow);
        byChunk = unpredictable(byChunk);
    }

    // The 16 rows from `row` on, chunks 2 k and 2 k + 1. Both are constants of an unrolled loop.
    __device__ static const void* at(const Bf16* tile, int row, int k, unsigned place)
    {
        const unsigned chunk = 2 * static_cast<unsigned>(k);
        const unsigned low = chunk % Shape::kFlips;
        const unsigned rest = static_cast<unsigned>(row) * Shape::kChunks + (chunk - low);
        constexpr unsigned kBytes = kChunk * sizeof(Bf16);
        return reinterpret_cast<const char*>(tile) + (place ^ (low * kBytes)) + rest * kBytes;
    }
};

// warp: rows [row, row + 16), columns [16 k, 16 k + 16) of a tile as the left operand.
template <int kDim>
__device__ void loadLeft(
    Fragment& a, const Bf16* tile, int row, int k, const LanePlaces<kDim>& places)
{
    ldmatrix4(a, LanePlaces<kDim>::at(tile, row, k, places.byRow));
}

// warp: these 16 by 16 elements as two right operands, with the tile's rows as their columns:
// b[0], b[1] for rows 0 to 7, b[2], b[3] for rows 8 to 15.
template <int kDim>
__device__ void loadRightByRows(
    Fragment& b, const Bf16* tile, int row, int k, const LanePlaces<kDim>& places)
{
    ldmatrix4(b, LanePlaces<kDim>::at(tile, row, k, places.byChunk));
}

// warp: these elements as two right operands, with the tile's columns as their columns: b[0], b[1]
// for columns 0 to 7, b[2], b[3] for columns 8 to 15.
template <int kDim>
__device__ void loadRightByColumns(
    Fragment& b, const Bf16* tile, int row, int k, const LanePlaces<kDim>& places)
{
    ldmatrix4Trans(b, LanePlaces<kDim>::at(tile, row, k, places.byRow));
}

// warp: two adjacent column tiles of a slab.
__device__ inline void mmaPair(
    float (&low)[4], float (&high)[4], const Fragment& a, const Fragment& b)
{
    const std::uint32_t first[2] = {b[0], b[1]};
    const std::uint32_t second[2] = {b[2], b[3]};
    mmaBf16(low, a, first);
    mmaBf16(high, a, second);
}

// Accumulators of a slab as a left operand: columns [16 k, 16 k + 16), rounded to BF16.
template <int kTiles>
__device__ void packLeft(Fragment& a, const float (&sums)[kTiles][4], int k)
{
    a[0] = packBf16(sums[2 * k][0], sums[2 * k][1]);
    a[1] = packBf16(sums[2 * k][2], sums[2 * k][3]);
    a[2] = packBf16(sums[2 * k + 1][0], sums[2 * k + 1][1]);
    a[3] = packBf16(sums[2 * k + 1][2], sums[2 * k + 1][3]);
}

template <int kTiles>
__device__ void clear(float (&sums)[kTiles][4])
{
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sums[n][i] = 0.0F;
}

// warp: writes a slab to 16 rows of shared memory that nobody else uses, then its first `count`
// rows to global memory in pieces of 16 bytes. Row g of the slab is multiplied by factor[0], row
// g + 8 by factor[1] (g = lane / 4).
template <int kDim>
__device__ void storeSlab(const float (&sums)[kDim / 8][4], const float (&factor)[2], Bf16* tile,
    const Strip<Bf16>& to, int count)
{
    using Shape = TileShape<kDim>;
    const unsigned lane = threadIdx.x % kWarp;
    __syncwarp(); // the warp's own reads of these rows are over
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned row = lane / 4 + 8 * static_cast<unsigned>(half);
            Bf16* at = tile + Shape::at(row, static_cast<unsigned>(n)) + lane % 4 * 2;
            *reinterpret_cast<std::uint32_t*>(at) =
                packBf16(sums[n][2 * half] * factor[half], sums[n][2 * half + 1] * factor[half]);
        }
    __syncwarp();
    for (unsigned i = lane; i < kSlab * Shape::kChunks; i += kWarp) {
        const unsigned row = i / Shape::kChunks;
        const unsigned chunk = i % Shape::kChunks;
        if (static_cast<int>(row) < count)
            *reinterpret_cast<uint4*>(to.row(row) + chunk * kChunk) =
                *reinterpret_cast<const uint4*>(tile + Shape::at(row, chunk));
    }
}

} // namespace mr::gpu
