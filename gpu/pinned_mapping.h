// A page-locked mapping: anonymous pages, registered with CUDA in slices.
//
// Threads  Engine thread; mapPinned() starts threads of its own and joins them.
// Errors   mapPinned(): those of mmap and cudaHostRegister. Nothing is left behind then.

#pragma once

#include "gpu/cuda_failure.h"

#include <cuda_runtime_api.h>

#include <cstddef>

namespace mr::gpu {

struct PinnedMapping {
    std::byte* base = nullptr; // null: the system has no such room
    std::size_t bytes = 0;     // whole pages
    std::size_t sliceBytes = 0;
    cudaError_t code = cudaSuccess; // error of the first slice that could not be registered
};

// Zeroed. Blocks while pages are made: about a second per 4 GiB and thread, the rate at which the
// system zeroes them.
PinnedMapping mapPinned(std::size_t bytes);

// Failures go to `failure`.
void unmapPinned(const PinnedMapping& mapping, CudaFailure& failure) noexcept;

} // namespace mr::gpu
