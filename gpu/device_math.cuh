// Shared by kernels: BF16 storage, packs of adjacent elements, sums in a fixed order.
//
// Everything is written without contraction (-fmad=false): an fma is one that is written, so the
// host can replay a kernel to the bit.
//
// Threads  blockSum, blockMax: all threads of a block, a multiple of 32.
// Order    Sums run through one tree: lanes 16, 8, 4, 2, 1, then warps in ascending order.

#pragma once

#include "gpu/ptx.cuh"

#include <cuda_runtime.h>

#include <cstdint>

namespace mr::gpu {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

// A BF16 in memory; arithmetic is in float.
struct Bf16 {
    std::uint16_t bits;
};

__device__ inline float toFloat(float x)
{
    return x;
}

__device__ inline float toFloat(Bf16 x)
{
    return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16);
}

// Nearest even; a NaN stays one.
template <typename T>
__device__ T fromFloat(float x);

template <>
__device__ inline float fromFloat<float>(float x)
{
    return x;
}

template <>
__device__ inline Bf16 fromFloat<Bf16>(float x)
{
    return {static_cast<std::uint16_t>(packBf16(x, 0.0F))};
}

// kCount adjacent elements, moved in one access.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
    T at[kCount];
};

// Elements of T in 16 bytes.
template <typename T>
inline constexpr int kPackOf = 16 / static_cast<int>(sizeof(T));

__device__ inline float warpSum(float x)
{
    for (int lane = kWarp / 2; lane > 0; lane /= 2)
        x = x + __shfl_xor_sync(kAllLanes, x, lane);
    return x;
}

__device__ inline double warpSum(double x)
{
    for (int lane = kWarp / 2; lane > 0; lane /= 2)
        x = x + __shfl_xor_sync(kAllLanes, x, lane);
    return x;
}

__device__ inline float warpMax(float x)
{
    for (int lane = kWarp / 2; lane > 0; lane /= 2)
        x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, lane));
    return x;
}

// The sum over a block, in every thread. `shared` holds a T per warp and is free again when the
// call returns. Linear thread index: x fastest.
template <typename T>
__device__ T blockSum(T x, T* shared, int thread, int threads)
{
    x = warpSum(x);
    if (thread % kWarp == 0)
        shared[thread / kWarp] = x;
    __syncthreads();
    T total = shared[0];
    for (int warp = 1; warp < threads / kWarp; ++warp)
        total = total + shared[warp];
    __syncthreads();
    return total;
}

__device__ inline float blockMax(float x, float* shared, int thread, int threads)
{
    x = warpMax(x);
    if (thread % kWarp == 0)
        shared[thread / kWarp] = x;
    __syncthreads();
    float top = shared[0];
    for (int warp = 1; warp < threads / kWarp; ++warp)
        top = fmaxf(top, shared[warp]);
    __syncthreads();
    return top;
}

// The bytes of LaunchShape::sharedBytes, aligned to 128.
template <typename T>
__device__ T* dynamicShared()
{
#ifdef MR_SIMT
    return reinterpret_cast<T*>(simt::dynamicSharedMemory());
#else
    extern __shared__ __align__(128) unsigned char mrDynamicShared[];
    return reinterpret_cast<T*>(mrDynamicShared);
#endif
}

} // namespace mr::gpu
