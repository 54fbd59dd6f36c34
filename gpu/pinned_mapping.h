// A page-locked mapping: anonymous pages, made by several threads, registered with CUDA.
//
// Threads  Engine thread; mapPinned() starts threads of its own and joins them.
// Errors   mapPinned(): those of mmap and cudaHostRegister. Nothing is left behind then.

#pragma once

#include "gpu/cuda_failure.h"

#include <cuda_runtime_api.h>

#include <cstddef>

namespace mr::gpu {

struct PinnedMapping {
    std::byte* base = nullptr;      // null: the system has no such room
    std::size_t bytes = 0;          // whole pages
    cudaError_t code = cudaSuccess; // of the registration
};

// Zeroed. Blocks while the system makes and zeroes the pages.
PinnedMapping mapPinned(std::size_t bytes);

// Failures go to `failure`.
void unmapPinned(const PinnedMapping& mapping, CudaFailure& failure) noexcept;

} // namespace mr::gpu
