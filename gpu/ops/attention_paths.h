// The parts launchAttention() and launchAttentionBackward() choose from. Private to attention*.cu.
//
// Arguments were checked, there is at least one token, head_dim is at most kMaxHeadDim.
//
// Threads  Engine thread.
// Errors   Those of launchKernel().

#pragma once

#include "core/device/ops.h"

#include <millrace/status.h>

#include <cuda_runtime_api.h>

namespace mr::gpu {

inline constexpr int kMaxHeadDim = 256;

// delta = row sums of out * gradOut, by head: the first step of both backward paths.
Status launchAttentionDelta(const AttentionBackwardArgs& args, cudaStream_t stream);

// F32 arithmetic, any head_dim, both types.
Status launchAttentionFma(const AttentionArgs& args, cudaStream_t stream);
Status launchAttentionBackwardFma(const AttentionBackwardArgs& args, cudaStream_t stream);

// Tensor cores, BF16, sm_80 and later. Preconditions: hasMmaForm(headDim); scale > 0, for the
// largest score is found before it is scaled; pointers to rows aligned to 16 bytes.
constexpr bool hasMmaForm(int headDim) noexcept
{
    return headDim == 64 || headDim == 80 || headDim == 96 || headDim == 128 || headDim == 256;
}
// Adds the partial gradients of keys and values over the query heads of each group, in order.
Status launchAttentionPartials(const AttentionBackwardArgs& args, cudaStream_t stream);

Status launchAttentionMma(const AttentionArgs& args, cudaStream_t stream);
Status launchAttentionBackwardMma(const AttentionBackwardArgs& args, cudaStream_t stream);

} // namespace mr::gpu
