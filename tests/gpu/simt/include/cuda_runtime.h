// The language of CUDA kernels in plain C++: built-in variables, barriers, warp functions,
// intrinsics, and a launch that runs the grid on the host before it returns.
//
// Stands before the toolkit's header of the same name on the include path of mr_simt.
//
// Threads  All functions but cudaLaunchKernelEx: inside a kernel only, except plain arithmetic.
// Source   CUDA C++ Programming Guide 13.0: warp functions, rounding of intrinsics.

#pragma once

#include "cuda_runtime_api.h"
#include "gpu/simt/grid.h"
#include "gpu/simt/thread_side.h"
#include "gpu/simt/vector_types.h"

#include <math.h> // the functions of the global namespace

#include <bit>
#include <cstdint>
#include <utility>

// Where a call stands: threads that meet must have come from the same line.
#define MR_SIMT_HERE const mr::simt::CallSite& where = mr::simt::CallSite::current()

inline void __syncthreads(MR_SIMT_HERE)
{
    mr::simt::syncBlock(where);
}

inline void __syncwarp(unsigned mask = ~0U, MR_SIMT_HERE)
{
    mr::simt::syncWarp(mask, where);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, MR_SIMT_HERE)
{
    return mr::simt::shuffle({"__shfl_sync", mask, where}, value,
        [=](int lane) { return lane / width * width + (source & (width - 1)); });
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, MR_SIMT_HERE)
{
    return mr::simt::shuffle({"__shfl_xor_sync", mask, where}, value,
        [=](int lane) { return (lane ^ with) / width <= lane / width ? lane ^ with : lane; });
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, MR_SIMT_HERE)
{
    return mr::simt::shuffle({"__shfl_up_sync", mask, where}, value, [=](int lane) {
        return lane % width >= static_cast<int>(by) ? lane - static_cast<int>(by) : lane;
    });
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, MR_SIMT_HERE)
{
    return mr::simt::shuffle({"__shfl_down_sync", mask, where}, value, [=](int lane) {
        return lane % width + static_cast<int>(by) < width ? lane + static_cast<int>(by) : lane;
    });
}

inline unsigned __ballot_sync(unsigned mask, int predicate, MR_SIMT_HERE)
{
    return mr::simt::ballot({"__ballot_sync", mask, where}, predicate != 0);
}

inline int __any_sync(unsigned mask, int predicate, MR_SIMT_HERE)
{
    return mr::simt::ballot({"__any_sync", mask, where}, predicate != 0) != 0;
}

inline int __all_sync(unsigned mask, int predicate, MR_SIMT_HERE)
{
    return mr::simt::ballot({"__all_sync", mask, where}, predicate != 0) == mask;
}

#undef MR_SIMT_HERE

inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

inline float __fadd_rn(float a, float b)
{
    return a + b;
}

inline float __fsub_rn(float a, float b)
{
    return a - b;
}

inline float __fmul_rn(float a, float b)
{
    return a * b;
}

inline float __fdiv_rn(float a, float b)
{
    return a / b;
}

inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}

// To the nearest integer, ties to even.
inline int __float2int_rn(float a)
{
    return static_cast<int>(nearbyintf(a));
}

inline double __dadd_rn(double a, double b)
{
    return a + b;
}

inline float rsqrtf(float a)
{
    return 1.0F / sqrtf(a);
}

inline unsigned __float_as_uint(float a)
{
    return std::bit_cast<unsigned>(a);
}

inline float __uint_as_float(unsigned a)
{
    return std::bit_cast<float>(a);
}

inline int __float_as_int(float a)
{
    return std::bit_cast<int>(a);
}

inline float __int_as_float(int a)
{
    return std::bit_cast<float>(a);
}

template <typename T>
T __ldg(const T* address)
{
    return *address;
}

#define MR_SIMT_MIN_MAX(T)                                                                         \
    inline T min(T a, T b)                                                                         \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    inline T max(T a, T b)                                                                         \
    {                                                                                              \
        return a < b ? b : a;                                                                      \
    }
MR_SIMT_MIN_MAX(int)
MR_SIMT_MIN_MAX(unsigned)
MR_SIMT_MIN_MAX(long)
MR_SIMT_MIN_MAX(unsigned long)
MR_SIMT_MIN_MAX(long long)
MR_SIMT_MIN_MAX(unsigned long long)
#undef MR_SIMT_MIN_MAX

// As on the device: of a number and a NaN, the number.
inline float min(float a, float b)
{
    return fminf(a, b);
}

inline float max(float a, float b)
{
    return fmaxf(a, b);
}

inline double min(double a, double b)
{
    return fmin(a, b);
}

inline double max(double a, double b)
{
    return fmax(a, b);
}

struct cudaLaunchAttribute;

struct cudaLaunchConfig_t {
    dim3 gridDim;
    dim3 blockDim;
    std::size_t dynamicSmemBytes = 0;
    cudaStream_t stream = nullptr;
    cudaLaunchAttribute* attrs = nullptr;
    unsigned numAttrs = 0;
};

template <typename... Params, typename... Args>
cudaError_t cudaLaunchKernelEx(
    const cudaLaunchConfig_t* config, void (*kernel)(Params...), Args&&... args)
{
    const auto thread = [&] { kernel(static_cast<Params>(args)...); };
    mr::simt::Launch launch;
    launch.kernel = reinterpret_cast<const void*>(kernel);
    launch.grid = config->gridDim;
    launch.block = config->blockDim;
    launch.sharedBytes = config->dynamicSmemBytes;
    launch.runThread = [](const void* call) { (*static_cast<const decltype(thread)*>(call))(); };
    launch.call = &thread;
    return mr::simt::runGrid(launch);
}
