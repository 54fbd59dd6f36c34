// quantize: a BF16 tensor as FP8 codes with one scale, as it lies and transposed.
//
// largestKernel  reads x once. Magnitudes of BF16 are ordered as their bits, with NaN above all, so
//                a block leaves the bits of its largest; no float is compared.
// codesKernel    every block takes the largest of these, which are 2 KiB, so no launch lies between
//                the two. A block makes a tile of 64 x 64 codes. The transposed tile goes through
//                shared memory, so that both results are written 64 adjacent bytes at a time.
//
// Rounding is written in integers: its bits are those of the CPU device on every card, also on one
// without FP8 conversions.

#include "core/device/fp8.h"
#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {
namespace {

constexpr int kQuantizeThreads = 256;
constexpr int kLoadedCodes = kPackOf<Bf16>;
constexpr int kPacksAtOnce = 4; // packs in flight a thread
constexpr int kCodeTile = 64;
constexpr int kTurnedCodes = 16; // of a thread's piece of a transposed line
constexpr int kRowsTogether = 2; // of a thread's packs, whose codes are stored in pairs
// Lines of codes are four bytes longer, and the second half of them begins 16 bytes later: the
// stores of a warp then meet in no bank.
constexpr int kTileLine = kCodeTile + 4;
constexpr int kTileGap = 16;
constexpr int kTileBytes = kCodeTile * kTileLine + kTileGap;

__device__ int lineAt(int line)
{
    return line * kTileLine + line / (kCodeTile / 2) * kTileGap;
}

__device__ unsigned larger(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

// The largest over a block, in every thread. `shared` holds one a warp.
__device__ unsigned blockLargest(unsigned x, unsigned* shared, int thread)
{
    for (int lane = kWarp / 2; lane > 0; lane /= 2)
        x = larger(x, __shfl_xor_sync(kAllLanes, x, lane));
    if (thread % kWarp == 0)
        shared[thread / kWarp] = x;
    __syncthreads();
    unsigned top = shared[0];
    for (int warp = 1; warp < kQuantizeThreads / kWarp; ++warp)
        top = larger(top, shared[warp]);
    return top;
}

// x (packs * kLoadedCodes). Block b writes partial[b].
__global__ void __launch_bounds__(kQuantizeThreads)
    largestKernel(const Bf16* __restrict__ x, std::int64_t packs, std::int32_t* partial)
{
    __shared__ unsigned warps[kQuantizeThreads / kWarp];
    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t step = std::int64_t{gridDim.x} * kQuantizeThreads;
    unsigned largest = 0;
    for (std::int64_t at = std::int64_t{blockIdx.x} * kQuantizeThreads + thread; at < packs;
         at += step * kPacksAtOnce) {
        Pack<Bf16, kLoadedCodes> held[kPacksAtOnce];
#pragma unroll
        for (int i = 0; i < kPacksAtOnce; ++i)
            if (at + i * step < packs)
                held[i] = loadPack<kLoadedCodes>(x + (at + i * step) * kLoadedCodes);
#pragma unroll
        for (int i = 0; i < kPacksAtOnce; ++i)
            if (at + i * step < packs)
                for (int k = 0; k < kLoadedCodes; ++k)
                    largest = larger(largest, held[i].at[k].bits & 0x7fffU);
    }
    largest = blockLargest(largest, warps, thread);
    if (thread == 0)
        partial[blockIdx.x] = static_cast<std::int32_t>(largest);
}

struct CodeScale {
    float factor; // of the elements, before they are rounded
    float scale;  // its inverse
};

// As fp8Scale() of core/device/fp8.h.
template <typename Code>
__device__ CodeScale scaleFor(unsigned largest)
{
    if (largest >= 0x7f80U)
        return {1.0F, __uint_as_float(0x7fc00000U)};
    if (largest == 0)
        return {1.0F, 1.0F};
    const int exponent = static_cast<int>(largest >> 7) - 127;
    const int wanted = Code::kTop - exponent - ((largest & 0x7fU) > 0x60U ? 1 : 0);
    const int power = wanted < 126 ? wanted : 126;
    return {__uint_as_float(static_cast<unsigned>(127 + power) << 23),
        __uint_as_float(static_cast<unsigned>(127 - power) << 23)};
}

// As fp8Of() of core/device/fp8.h.
template <typename Code>
__device__ std::uint8_t codeOf(float x)
{
    constexpr unsigned kShift = 23 - Code::kMantissa;
    constexpr unsigned kSmallestNormal = static_cast<unsigned>(128 - Code::kBias) << 23;
    constexpr unsigned kRounder = static_cast<unsigned>(151 - Code::kBias - Code::kMantissa) << 23;
    constexpr unsigned kRebias = static_cast<unsigned>(127 - Code::kBias) << Code::kMantissa;
    const unsigned bits = __float_as_uint(x);
    const unsigned size = bits & 0x7fffffffU;
    const unsigned small =
        __float_as_uint(__uint_as_float(size) + __uint_as_float(kRounder)) - kRounder;
    const unsigned rounded = size + ((1U << (kShift - 1)) - 1) + ((size >> kShift) & 1U);
    const unsigned code = size < kSmallestNormal ? small : (rounded >> kShift) - kRebias;
    const unsigned kept = code < Code::kLargest ? code : Code::kLargest;
    return static_cast<std::uint8_t>(kept | ((bits >> 24) & 0x80U));
}

struct CodesParams {
    const Bf16* x; // (rows, cols)
    std::int64_t rows;
    std::int64_t cols;
    const std::int32_t* partial; // (partials)
    int partials;
    std::uint8_t* codes;  // (rows, cols); null: not wanted
    std::uint8_t* turned; // (cols, rows); null: not wanted
    float* scale;
};

// The codes of the tile at (row, col), to p.codes and, transposed, to `tile`. Sizes are multiples
// of kCodeBlock, so what a thread takes is inside or outside as a whole.
template <typename Code>
__device__ void makeCodes(
    const CodesParams& p, std::int64_t row, std::int64_t col, float factor, std::uint8_t* tile)
{
    constexpr int kPacks = kCodeTile / kLoadedCodes; // of a line
    static_assert(kQuantizeThreads / kPacks * kRowsTogether == kCodeTile);
    const int thread = static_cast<int>(threadIdx.x);
    const int c = thread % kPacks * kLoadedCodes;
    const int r = thread / kPacks * kRowsTogether;
    if (row + r >= p.rows || col + c >= p.cols)
        return;
    const std::int64_t at = (row + r) * p.cols + col + c;
    Pack<Bf16, kLoadedCodes> x[kRowsTogether];
    for (int i = 0; i < kRowsTogether; ++i)
        x[i] = loadPack<kLoadedCodes>(p.x + at + i * p.cols);
    Pack<std::uint8_t, kLoadedCodes> codes[kRowsTogether];
    for (int i = 0; i < kRowsTogether; ++i) {
        for (int k = 0; k < kLoadedCodes; ++k)
            codes[i].at[k] = codeOf<Code>(toFloat(x[i].at[k]) * factor);
        if (p.codes)
            storePack(p.codes + at + i * p.cols, codes[i]);
    }
    std::uint8_t* const to = tile + lineAt(c) + r;
    for (int k = 0; k < kLoadedCodes; ++k)
        stagePack(to + k * kTileLine,
            Pack<std::uint8_t, kRowsTogether>{{codes[0].at[k], codes[1].at[k]}});
}

__device__ void storeTurned(
    const CodesParams& p, std::int64_t row, std::int64_t col, const unsigned* tile)
{
    constexpr int kPieces = kCodeTile / kTurnedCodes; // of a line
    const int thread = static_cast<int>(threadIdx.x);
    const int c = thread / kPieces;
    const int r = thread % kPieces * kTurnedCodes;
    if (row + r >= p.rows || col + c >= p.cols)
        return;
    const unsigned* from = tile + (lineAt(c) + r) / 4;
    storeGlobal(p.turned + (col + c) * p.rows + row + r, uint4{from[0], from[1], from[2], from[3]});
}

// Grid.x covers cols, grid.y rows, by tiles.
template <typename Code>
__global__ void __launch_bounds__(kQuantizeThreads) codesKernel(CodesParams p)
{
    static_assert(kQuantizeThreads * kTurnedCodes == kCodeTile * kCodeTile);
    __shared__ unsigned warps[kQuantizeThreads / kWarp];
    __shared__ unsigned tile[kTileBytes / 4];
    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t row = std::int64_t{blockIdx.y} * kCodeTile;
    const std::int64_t col = std::int64_t{blockIdx.x} * kCodeTile;
    unsigned largest = 0;
    for (int i = thread; i < p.partials; i += kQuantizeThreads)
        largest = larger(largest, static_cast<unsigned>(p.partial[i]));
    const CodeScale scale = scaleFor<Code>(blockLargest(largest, warps, thread));
    if (thread == 0 && blockIdx.x == 0 && blockIdx.y == 0)
        *p.scale = scale.scale;
    makeCodes<Code>(p, row, col, scale.factor, reinterpret_cast<std::uint8_t*>(tile));
    if (!p.turned)
        return;
    __syncthreads();
    storeTurned(p, row, col, tile);
}

} // namespace

Status launchQuantize(const QuantizeArgs& args, cudaStream_t stream)
{
    const std::int64_t packs = args.x.count() / kLoadedCodes;
    LaunchShape shape;
    shape.block = dim3(kQuantizeThreads);
    shape.grid = dim3(static_cast<unsigned>(std::min<std::int64_t>(
        kQuantizePartials, blocksFor(packs, kQuantizeThreads * kPacksAtOnce))));
    MR_TRY(launchKernel("quantize", listed<largestKernel>(), shape, stream, args.x.as<const Bf16>(),
        packs, args.partial.as<std::int32_t>()));
    const CodesParams params{args.x.as<const Bf16>(), args.x.dims[0], args.x.dims[1],
        args.partial.as<const std::int32_t>(), static_cast<int>(shape.grid.x),
        args.codes.as<std::uint8_t>(), args.turned.as<std::uint8_t>(), args.scale.as<float>()};
    shape.grid = dim3(blocksFor(params.cols, kCodeTile), blocksFor(params.rows, kCodeTile));
    const DType type = args.codes.data ? args.codes.dtype : args.turned.dtype;
    return type == DType::E5M2
               ? launchKernel("quantize", listed<codesKernel<E5m2>>(), shape, stream, params)
               : launchKernel("quantize", listed<codesKernel<E4m3>>(), shape, stream, params);
}

} // namespace mr::gpu
