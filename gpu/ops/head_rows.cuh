// Shared by head_norm_rope.cu and its backward: how the heads of q and k are dealt to threads.
//
// A row is one head of one token. Rows of q come first, then those of k, each token by token; a
// block has rows of one of them. There are two ways to take a row:
//
// - A pack a lane, where a row is at most 32 packs (256 BF16 or 128 F32 elements) and rotates whole
//   packs. A row has as many lanes as the next power of two of its packs, so a warp holds several
//   rows. Lanes of a row meet their partners of the rotation in shared memory.
// - A warp a row, which it walks along more than once, for every other row.
//
// Order    A row's sum has the bits of rms_norm.cu for a tensor of such rows: packs go to the same
//          lanes, and lanes without a pack add zeros.

#pragma once

#include "core/device/ops.h"
#include "gpu/ops/norm_rows.cuh"
#include "gpu/ops/rotation.cuh"

namespace mr::gpu {

inline constexpr int kHeadThreads = 256;

// q or k. projected (rows, headDim), rstd (rows), weight (headDim).
template <typename T>
struct HeadSide {
    T* projected;
    float* rstd;
    const T* weight;
    int firstHead; // within a packed row
    int heads;
    int rows;   // tokens * heads: no card has the memory of 2^31 of them
    int blocks; // of threads
};

template <typename T>
struct HeadRows {
    T* packed; // (tokens, cols)
    HeadSide<T> queries, keys;
    const std::int32_t* positions; // (tokens)
    const float* cosTable;         // (maxPosition, half)
    const float* sinTable;         // (maxPosition, half)
    std::int64_t cols;
    int headDim;
    int half;     // half of a head's rotated elements; 0: positions and tables are not read
    int lanes;    // of a row; a power of two
    bool onePlus; // NormGain::OnePlusWeight
};

// One row's own memory.
template <typename T>
struct HeadRow {
    T* packed;    // (headDim)
    T* projected; // (headDim)
    float* rstd;
    const float* cosine; // (half)
    const float* sine;   // (half)
};

template <typename T>
__device__ HeadRow<T> headRow(const HeadRows<T>& a, const HeadSide<T>& side, int row)
{
    const int token = row / side.heads;
    const int head = row - token * side.heads + side.firstHead;
    const std::int64_t angles = a.half > 0 ? std::int64_t{a.positions[token]} * a.half : 0;
    return {a.packed + token * a.cols + std::int64_t{head} * a.headDim,
        side.projected + std::int64_t{row} * a.headDim, side.rstd + row, a.cosTable + angles,
        a.sinTable + angles};
}

// A block's side; `block` becomes the index within it.
template <typename T>
__device__ const HeadSide<T>& sideOf(const HeadRows<T>& a, int& block)
{
    if (block < a.queries.blocks)
        return a.queries;
    block -= a.queries.blocks;
    return a.keys;
}

// The sum over the lanes of a row, in each of them.
__device__ inline float rowSum(float x, int lanes)
{
    for (int lane = lanes / 2; lane > 0; lane /= 2)
        x = x + __shfl_xor_sync(kAllLanes, x, lane);
    return x;
}

// The sum over a row's packs, for a warp a row: as a block of normThreads() would have it.
// add(pack, sum) returns sum + the terms of a pack.
template <typename Add>
__device__ float walkedSum(int packs, unsigned normThreads, Add add)
{
    const int threads = static_cast<int>(normThreads);
    float total = 0.0F;
    for (int first = 0; first < threads; first += kWarp) {
        float sum = 0.0F;
        for (int pack = first + static_cast<int>(threadIdx.x) % kWarp; pack < packs;
             pack += threads)
            sum = add(pack, sum);
        sum = warpSum(sum);
        total = first == 0 ? sum : total + sum;
    }
    return total;
}

// Pack `pack` of a row after its rotation; `row`: its packs in shared memory. sign -1 rotates back.
template <typename T, int kPack>
__device__ Pack<T, kPack> rotatedPack(
    const HeadRows<T>& a, const HeadRow<T>& angles, const Pack<T, kPack>* row, int pack, float sign)
{
    const int first = pack * kPack;
    if (first >= 2 * a.half)
        return row[pack];
    const bool isUpper = first >= a.half;
    const int apart = a.half / kPack;
    const Pack<T, kPack> other = row[isUpper ? pack - apart : pack + apart];
    const int angle = isUpper ? first - a.half : first;
    float cosine[kPack];
    float sine[kPack];
    loadTable(angles.cosine + angle, cosine);
    loadTable(angles.sine + angle, sine);
    float out[kPack];
    for (int i = 0; i < kPack; ++i)
        out[i] = rotated(
            toFloat(row[pack].at[i]), toFloat(other.at[i]), cosine[i], sign * sine[i], isUpper);
    return roundPack<T>(out);
}

// All lanes of a warp: rotates a row in global memory, in place, element by element.
template <typename T>
__device__ void rotateWalked(const HeadRows<T>& a, const HeadRow<T>& row, float sign)
{
    for (int i = static_cast<int>(threadIdx.x) % kWarp; i < a.half; i += kWarp) {
        const float low = toFloat(row.packed[i]);
        const float high = toFloat(row.packed[a.half + i]);
        const float sine = sign * row.sine[i];
        row.packed[i] = fromFloat<T>(rotated(low, high, row.cosine[i], sine, false));
        row.packed[a.half + i] = fromFloat<T>(rotated(high, low, row.cosine[i], sine, true));
    }
}

// How a launch takes its rows.
struct HeadDeal {
    bool packed = false;      // rows and tensors take packs
    bool heldByLanes = false; // a pack a lane
    int lanes = kWarp;
};

template <typename T, typename Args>
HeadDeal dealHeads(const Args& args, const TensorView& packed)
{
    constexpr int kPack = kPackOf<T>;
    HeadDeal deal;
    deal.packed = args.headDim % kPack == 0 && packed.dims[1] % kPack == 0 &&
                  fitsPacks(kPack, packed, args.queries.projected, args.queries.weight,
                      args.keys.projected, args.keys.weight) &&
                  fitsPacks(kPackOf<float>, args.cosTable, args.sinTable);
    const int packs = args.headDim / kPack;
    deal.heldByLanes = deal.packed && args.rotaryDim / 2 % kPack == 0 && packs <= kWarp;
    while (deal.heldByLanes && deal.lanes / 2 >= packs)
        deal.lanes /= 2;
    return deal;
}

// `rowsPerBlock` decides the blocks of both sides.
template <typename T, typename Args>
HeadRows<T> headRowsOf(
    const Args& args, const TensorView& packed, const HeadDeal& deal, int rowsPerBlock)
{
    const auto tokens = static_cast<int>(packed.dims[0]);
    const auto side = [&](const HeadNorm& norm, int firstHead, int heads) {
        const int rows = tokens * heads;
        return HeadSide<T>{norm.projected.as<T>(), norm.rstd.as<float>(), norm.weight.as<const T>(),
            firstHead, heads, rows, (rows + rowsPerBlock - 1) / rowsPerBlock};
    };
    return {packed.as<T>(), side(args.queries, args.firstHead, args.heads),
        side(args.keys, args.heads, args.kvHeads), args.positions.template as<const std::int32_t>(),
        args.cosTable.template as<const float>(), args.sinTable.template as<const float>(),
        packed.dims[1], args.headDim, args.rotaryDim / 2, deal.lanes,
        args.gain == NormGain::OnePlusWeight};
}

template <typename T>
LaunchShape headShape(const HeadRows<T>& a)
{
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(a.queries.blocks + a.keys.blocks));
    shape.block = dim3(kHeadThreads);
    return shape;
}

} // namespace mr::gpu
