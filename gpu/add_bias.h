// Adds a bias to a product where the library of matrix products does not: BF16 to F32, and shapes
// for which it has no algorithm with a bias.
//
// Threads  Engine thread.
// Errors   Those of launchKernel().

#pragma once

#include "core/device/tensor.h"

#include <millrace/status.h>

#include <cuda_runtime_api.h>

namespace mr::gpu {

// out (m, n) = out + bias, or = bias where not `add`; in F32, stored as out's type. bias (n)
// is of out's type, or BF16 where out is F32.
Status launchAddBias(const TensorView& out, const TensorView& bias, bool add, cudaStream_t stream);

} // namespace mr::gpu
