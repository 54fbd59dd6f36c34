// Adds a BF16 bias to an F32 result, which the library of matrix products cannot do by itself.
//
// Threads  Engine thread.
// Errors   Those of launchKernel().

#pragma once

#include "core/device/tensor.h"

#include <millrace/status.h>

#include <cuda_runtime_api.h>

namespace mr::gpu {

// out (m, n) = out + bias, or = bias where not `add`; in F32, stored as out's type. out and bias
// (n) are each BF16 or F32.
Status launchAddBias(const TensorView& out, const TensorView& bias, bool add, cudaStream_t stream);

} // namespace mr::gpu
