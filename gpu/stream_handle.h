// The CUDA stream behind a Stream of the CUDA device: all that ops need to know of it.

#pragma once

#include <cuda_runtime_api.h>

namespace mr {

class Stream;

namespace gpu {

// Precondition: `stream` and the called ops belong to one device.
cudaStream_t streamHandle(Stream& stream) noexcept;

} // namespace gpu
} // namespace mr
