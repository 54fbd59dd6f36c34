#include "gpu/device_math.cuh"
#include "gpu/launch.h"
#include "gpu/sample_kernels.h"

namespace mr::gpu {
namespace samples {

constexpr int kReversed = 256;

template <bool kBarrier>
__device__ void reverse(const float* values, float* out, int n, float* shared)
{
    const int i = static_cast<int>(threadIdx.x);
    if (i < n)
        shared[i] = values[i];
    if (kBarrier)
        __syncthreads();
    if (i < n)
        out[i] = shared[n - 1 - i];
}

template <bool kBarrier>
__global__ void reverseStaticKernel(const float* values, float* out, int n)
{
    __shared__ float shared[kReversed];
    reverse<kBarrier>(values, out, n, shared);
}

template <bool kBarrier>
__global__ void reverseDynamicKernel(const float* values, float* out, int n)
{
    reverse<kBarrier>(values, out, n, dynamicShared<float>());
}

__device__ float shuffledInTwoPlaces(int lane)
{
    if (lane < 16)
        return __shfl_xor_sync(kAllLanes, 1.0F, 1);
    return __shfl_xor_sync(kAllLanes, 2.0F, 1);
}

__device__ float misused(Misuse misuse, float* shared)
{
    const int thread = static_cast<int>(threadIdx.x);
    switch (misuse) {
    case Misuse::BarrierAfterReturn:
        if (thread < 32)
            __syncthreads();
        return 0.0F;
    case Misuse::BarrierInTwoPlaces:
        if (thread < 32)
            __syncthreads();
        else
            __syncthreads();
        return 0.0F;
    case Misuse::ShuffleAfterReturn:
        return thread == 5 ? 0.0F : __shfl_xor_sync(kAllLanes, 1.0F, 1);
    case Misuse::ShuffleInTwoPlaces:
        return shuffledInTwoPlaces(thread % kWarp);
    case Misuse::ShuffleFromOutside:
        return thread % kWarp < 8 ? __shfl_xor_sync(0xffU, 1.0F, 8) : 0.0F;
    case Misuse::LaneOutsideItsMask:
        return __shfl_xor_sync(0xffU, 1.0F, 1);
    case Misuse::MisalignedCopy:
        cpAsync16(shared + 1, shared + 8, true);
        return 0.0F;
    case Misuse::NoDynamicMemory:
        return dynamicShared<float>()[thread];
    }
    return 0.0F;
}

__global__ void misuseKernel(Misuse misuse, float* out)
{
    __shared__ __align__(16) float shared[16];
    out[threadIdx.x] = misused(misuse, shared);
}

__global__ void warpFunctionsKernel(float* out)
{
    const int lane = static_cast<int>(threadIdx.x);
    float* row = out + lane * 8;
    row[0] = __shfl_sync(kAllLanes, static_cast<float>(lane), 3);
    row[1] = __shfl_xor_sync(kAllLanes, static_cast<float>(lane), 1);
    row[2] = __shfl_up_sync(kAllLanes, static_cast<float>(lane), 2);
    row[3] = static_cast<float>(__shfl_down_sync(kAllLanes, static_cast<double>(lane), 2));
    row[4] = static_cast<float>(__shfl_xor_sync(kAllLanes, lane, 3, 8));
    row[5] = __ballot_sync(kAllLanes, lane % 2) == 0xaaaaaaaaU ? 1.0F : 0.0F;
    row[6] = __any_sync(kAllLanes, lane == 7) != 0 ? 1.0F : 0.0F;
    row[7] = __all_sync(kAllLanes, lane != 7) != 0 ? 1.0F : 0.0F;
}

__device__ std::uint32_t pairOf(std::uint16_t low, std::uint16_t high)
{
    return low | static_cast<std::uint32_t>(high) << 16;
}

// The tables of the PTX ISA for mma.m16n8k16, index by index.
__device__ void fragmentsByIndex(const std::uint16_t* a, const std::uint16_t* b, int lane,
    std::uint32_t (&fa)[4], std::uint32_t (&fb)[2])
{
    const int group = lane >> 2;
    const int member = lane % 4;
    for (int i = 0; i < 8; i += 2) { // element a_i of the table
        const int row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
        const int column = member * 2 + (i >= 4 ? 8 : 0);
        fa[i / 2] = pairOf(a[row * 16 + column], a[row * 16 + column + 1]);
    }
    for (int i = 0; i < 4; i += 2) {
        const int row = member * 2 + (i >= 2 ? 8 : 0);
        fb[i / 2] = pairOf(b[row * 8 + group], b[(row + 1) * 8 + group]);
    }
}

__device__ void fragmentsByLoad(const std::uint16_t* a, const std::uint16_t* b, int lane,
    std::uint32_t (&fa)[4], std::uint32_t (&fb)[2])
{
    __shared__ __align__(16) std::uint16_t tileA[16][16];
    __shared__ __align__(16) std::uint16_t tileB[16][8];
    for (int i = lane; i < 256; i += kWarp)
        tileA[i / 16][i % 16] = a[i];
    for (int i = lane; i < 128; i += kWarp)
        tileB[i / 8][i % 8] = b[i];
    __syncwarp();
    ldmatrix4(fa, &tileA[lane % 16][lane / 16 * 8]);
    std::uint32_t both[4];
    ldmatrix4Trans(both, &tileB[lane % 16][0]); // lanes 16 on give the same two matrices again
    fb[0] = both[0];
    fb[1] = both[1];
}

__global__ void productKernel(const std::uint16_t* a, const std::uint16_t* b, float* d, bool byLoad)
{
    const int lane = static_cast<int>(threadIdx.x);
    std::uint32_t fa[4];
    std::uint32_t fb[2];
    if (byLoad)
        fragmentsByLoad(a, b, lane, fa, fb);
    else
        fragmentsByIndex(a, b, lane, fa, fb);
    float fd[4] = {};
    mmaBf16(fd, fa, fb);
    for (int i = 0; i < 4; ++i)
        d[((lane >> 2) + (i < 2 ? 0 : 8)) * 8 + lane % 4 * 2 + (i & 1)] = fd[i];
}

__global__ void loadKernel(const std::uint16_t* tiles, std::uint32_t* r, bool transpose)
{
    __shared__ __align__(16) std::uint16_t shared[4 * 64];
    const int lane = static_cast<int>(threadIdx.x);
    for (int i = lane; i < 4 * 64; i += kWarp)
        shared[i] = tiles[i];
    __syncwarp();
    std::uint32_t mine[4];
    if (transpose)
        ldmatrix4Trans(mine, shared + lane * 8);
    else
        ldmatrix4(mine, shared + lane * 8);
    for (int i = 0; i < 4; ++i)
        r[lane * 4 + i] = mine[i];
}

template <int kPending>
__global__ void copiesKernel(const float* values, float* out, bool valid)
{
    __shared__ __align__(16) float shared[kWarp * 8];
    const int lane = static_cast<int>(threadIdx.x);
    for (int i = 0; i < 8; ++i)
        shared[lane * 8 + i] = -1.0F;
    for (int half = 0; half < 2; ++half) {
        cpAsync16(shared + lane * 8 + half * 4, values + lane * 8 + half * 4, valid);
        cpAsyncCommit();
    }
    cpAsyncWait<kPending>();
    for (int i = 0; i < 8; ++i)
        out[lane * 8 + i] = shared[lane * 8 + i];
}

__global__ void shapeKernel(float* out)
{
    if (threadIdx.x == 0)
        out[blockIdx.x] = static_cast<float>(blockIdx.x);
}

} // namespace samples

using namespace samples;

Status launchReverse(const float* values, float* out, int n, bool barrier, bool dynamic)
{
    const LaunchShape shape{1, kReversed, dynamic ? kReversed * sizeof(float) : 0};
    if (dynamic)
        return launchKernel("reverse",
            barrier ? listed<reverseDynamicKernel<true>>() : listed<reverseDynamicKernel<false>>(),
            shape, nullptr, values, out, n);
    return launchKernel("reverse",
        barrier ? listed<reverseStaticKernel<true>>() : listed<reverseStaticKernel<false>>(), shape,
        nullptr, values, out, n);
}

Status launchMisuse(Misuse misuse, float* out)
{
    return launchKernel("misuse", listed<misuseKernel>(), {1, 64}, nullptr, misuse, out);
}

Status launchWarpFunctions(float* out)
{
    return launchKernel("warpFunctions", listed<warpFunctionsKernel>(), {1, kWarp}, nullptr, out);
}

Status launchProduct(const std::uint16_t* a, const std::uint16_t* b, float* d, bool byLoad)
{
    return launchKernel("product", listed<productKernel>(), {1, kWarp}, nullptr, a, b, d, byLoad);
}

Status launchLoad(const std::uint16_t* tiles, std::uint32_t* r, bool transpose)
{
    return launchKernel("load", listed<loadKernel>(), {1, kWarp}, nullptr, tiles, r, transpose);
}

Status launchCopies(const float* values, float* out, int pending, bool valid)
{
    const auto kernel = pending == 0   ? listed<copiesKernel<0>>()
                        : pending == 1 ? listed<copiesKernel<1>>()
                                       : listed<copiesKernel<2>>();
    return launchKernel("copies", kernel, {1, kWarp}, nullptr, values, out, valid);
}

Status launchShape(
    unsigned gridX, unsigned gridY, unsigned threads, std::size_t sharedBytes, float* out)
{
    return launchKernel(
        "shape", listed<shapeKernel>(), {{gridX, gridY}, threads, sharedBytes}, nullptr, out);
}

} // namespace mr::gpu
