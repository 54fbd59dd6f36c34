// The types and calls of the CUDA runtime that gpu/ uses, for kernels that run on the host.
//
// Stands before the toolkit's header of the same name on the include path of mr_simt.
//
// Source   CUDA Runtime API and CUDA C++ Programming Guide 13.0: names, layouts, alignments.

#pragma once

#include <cstddef>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static // blocks run one after another, so one copy serves all

enum cudaError_t : int {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorLaunchFailure = 719,
};

struct CUstream_st;
using cudaStream_t = CUstream_st*;

// Text of a cudaErrorLaunchFailure names the fault of the last kernel.
const char* cudaGetErrorName(cudaError_t code) noexcept;
const char* cudaGetErrorString(cudaError_t code) noexcept;
cudaError_t cudaGetLastError() noexcept;

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct cudaFuncAttributes {
    int maxThreadsPerBlock = 0;
};

// Puts the kernel among those that mr::simt::loadedKernels() has.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
