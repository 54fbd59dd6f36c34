// sum, normBlocks, normJoin: sums in the order that ops.h defines.
//
// sum          a micro-batch's losses, a few thousand numbers: one block.
// normBlocks   reads every gradient once. Its order gives element i of a block of 1,024 to lane
//              i % 16, so a lane needs every 16th element; read that way from memory a warp would
//              fetch 2-byte pieces. So a warp copies two blocks to shared memory in 16-byte pieces,
//              8 in flight a lane, and each half of it sums one block from there. Warps do not wait
//              for each other.
// normJoin     a warp sums a chunk, because F64 is slow on most cards and needs all of their
//              multiprocessors; then one thread adds the chunks, because their order is a single
//              chain, while its block brings them to shared memory.
//
// Bits equal those of the CPU device.

#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {
namespace {

constexpr int kLossThreads = 1024;

constexpr int kChunk = 1024; // as in NormJoinArgs
constexpr int kChunkWarps = 4;
constexpr int kJoinThreads = 256;
constexpr int kPerLane = kChunk / kWarp;

constexpr int kNormBlock = 1024; // as in NormBlocksArgs
constexpr int kNormLanes = 16;
constexpr int kNormWarps = 4;
constexpr int kBlocksPerWarp = kWarp / kNormLanes;
// Sixteen elements more than a block: the halves of a warp then read different banks.
constexpr int kNormStride = kNormBlock + kNormLanes;
constexpr int kLoads = 8; // in flight a lane

// values (n). Thread t adds t, t + 1024, ... in order; then the tree of blockSum().
__global__ void __launch_bounds__(kLossThreads)
    sumKernel(const float* __restrict__ values, double* __restrict__ total, std::int64_t count)
{
    __shared__ double warps[kLossThreads / kWarp];
    const int thread = static_cast<int>(threadIdx.x);
    double sum = 0.0;
    for (std::int64_t i = thread; i < count; i += kLossThreads)
        sum = sum + static_cast<double>(values[i]);
    sum = blockSum(sum, warps, thread, kLossThreads);
    if (thread == 0)
        *total = sum;
}

// Copies elements [first, first + kBlocksPerWarp * kNormBlock) to `staged`, in blocks kNormStride
// apart; 0 past `count`, which changes no sum of squares. All lanes of a warp.
template <typename T, int kPack>
__device__ void stageBlocks(
    const T* __restrict__ x, std::int64_t first, std::int64_t count, int lane, T* staged)
{
    constexpr int kAll = kBlocksPerWarp * kNormBlock;
    constexpr int kApart = kWarp * kPack; // from pack to pack of a lane
    static_assert(kNormBlock % kApart == 0);
    const int mine = lane * kPack;
    const T* const from = x + first + mine;
    T* const to = staged + mine;
    const int left = static_cast<int>(min(std::int64_t{kAll}, count - first)) - mine;
    for (int round = 0; round < kAll; round += kLoads * kApart) {
        Pack<T, kPack> held[kLoads];
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            const int at = round + i * kApart;
            if (at + kPack <= left)
                held[i] = loadPack<kPack>(from + at);
            else
                for (int k = 0; k < kPack; ++k)
                    held[i].at[k] = at + k < left ? from[at + k] : fromFloat<T>(0.0F);
        }
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            const int at = round + i * kApart;
            stagePack(to + at + at / kNormBlock * kNormLanes, held[i]);
        }
    }
}

// x (n), blockSums (ceil(n / 1024)). A warp takes two blocks, a block of threads 8; grid.x
// covers them.
template <typename T, int kPack>
__global__ void __launch_bounds__(kNormWarps* kWarp)
    normBlocksKernel(const T* __restrict__ x, float* __restrict__ blockSums, std::int64_t count)
{
    constexpr int kPacked = kPackOf<T>;
    __shared__ Pack<T, kPacked> shared[kNormWarps][kBlocksPerWarp * kNormStride / kPacked];
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const std::int64_t block = (std::int64_t{blockIdx.x} * kNormWarps + warp) * kBlocksPerWarp;
    if (block * kNormBlock >= count)
        return; // the whole warp

    T* staged = shared[warp][0].at;
    stageBlocks<T, kPack>(x, block * kNormBlock, count, lane, staged);
    __syncwarp();

    const int half = lane / kNormLanes;
    const T* mine = staged + half * kNormStride + lane % kNormLanes;
    float sum = 0.0F;
#pragma unroll 16
    for (int i = 0; i < kNormBlock; i += kNormLanes) {
        const float value = toFloat(mine[i]);
        sum = __fmaf_rn(value, value, sum);
    }
    // The other half's lane holds the other operand; a + b and b + a have the same bits.
    for (int other = kNormLanes / 2; other > 0; other /= 2)
        sum = sum + __shfl_xor_sync(kAllLanes, sum, other);
    if (lane % kNormLanes == 0 && (block + half) * kNormBlock < count)
        blockSums[block + half] = sum;
}

// blockSums (count), chunkSums (ceil(count / 1024)). Warp w of the grid sums chunk w in the order
// of NormJoinArgs.
__global__ void __launch_bounds__(kChunkWarps* kWarp) normChunksKernel(
    const float* __restrict__ blockSums, std::int64_t count, double* __restrict__ chunkSums)
{
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const std::int64_t chunk =
        std::int64_t{blockIdx.x} * kChunkWarps + static_cast<int>(threadIdx.x) / kWarp;
    if (chunk * kChunk >= count)
        return; // the whole warp
    float held[kPerLane];
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const std::int64_t at = chunk * kChunk + i * kWarp + lane;
        held[i] = at < count ? blockSums[at] : 0.0F; // adding 0 changes nothing
    }
    double sum = 0.0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
        sum = sum + static_cast<double>(held[i]);
    sum = warpSum(sum);
    if (lane == 0)
        chunkSums[chunk] = sum;
}

__device__ StepScalars scalarsOf(double total, double clipNorm)
{
    StepScalars scalars;
    scalars.gradNorm = sqrt(total);
    scalars.finite = isfinite(total) ? 1 : 0;
    if (clipNorm > 0.0 && scalars.finite != 0) {
        const double factor = clipNorm / (scalars.gradNorm + 1e-6);
        scalars.clipFactor = static_cast<float>(factor < 1.0 ? factor : 1.0);
    }
    return scalars;
}

// chunkSums (chunks). One block: thread 0 adds them in order.
__global__ void __launch_bounds__(kJoinThreads) normJoinKernel(const double* __restrict__ chunkSums,
    std::int64_t chunks, double clipNorm, StepScalars* scalars)
{
    __shared__ double held[kJoinThreads];
    const int thread = static_cast<int>(threadIdx.x);
    double total = 0.0;
    for (std::int64_t first = 0; first < chunks; first += kJoinThreads) {
        const std::int64_t left = chunks - first;
        if (thread < left)
            held[thread] = chunkSums[first + thread];
        __syncthreads();
        if (thread == 0)
            for (int i = 0; i < kJoinThreads && i < left; ++i)
                total = total + held[i];
        __syncthreads();
    }
    if (thread == 0)
        *scalars = scalarsOf(total, clipNorm);
}

template <typename T>
Status normBlocks(const NormBlocksArgs& args, cudaStream_t stream)
{
    LaunchShape shape;
    shape.grid = dim3(blocksFor(args.blockSums.dims[0], kNormWarps * kBlocksPerWarp));
    shape.block = dim3(kNormWarps * kWarp);
    const auto kernel = fitsPacks(kPackOf<T>, args.x) ? listed<normBlocksKernel<T, kPackOf<T>>>()
                                                      : listed<normBlocksKernel<T, 1>>();
    return launchKernel("normBlocks", kernel, shape, stream, args.x.as<const T>(),
        args.blockSums.as<float>(), args.x.dims[0]);
}

} // namespace

Status launchSum(const SumArgs& args, cudaStream_t stream)
{
    LaunchShape shape;
    shape.grid = dim3(1);
    shape.block = dim3(kLossThreads);
    return launchKernel("sum", listed<sumKernel>(), shape, stream, args.values.as<const float>(),
        args.total.as<double>() + args.index, args.values.dims[0]);
}

Status launchNormBlocks(const NormBlocksArgs& args, cudaStream_t stream)
{
    return args.x.dtype == DType::BF16 ? normBlocks<Bf16>(args, stream)
                                       : normBlocks<float>(args, stream);
}

Status launchNormJoin(const NormJoinArgs& args, cudaStream_t stream)
{
    const std::int64_t chunks = args.chunkSums.dims[0];
    MR_TRY(launchKernel("normJoin", listed<normChunksKernel>(),
        {dim3(blocksFor(chunks, kChunkWarps)), dim3(kChunkWarps * kWarp)}, stream,
        args.blockSums.as<const float>(), args.blockSums.dims[0], args.chunkSums.as<double>()));
    return launchKernel("normJoin", listed<normJoinKernel>(), {dim3(1), dim3(kJoinThreads)}, stream,
        args.chunkSums.as<const double>(), chunks, args.clipNorm, args.scalars.as<StepScalars>());
}

} // namespace mr::gpu
