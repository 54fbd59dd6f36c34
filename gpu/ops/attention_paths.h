// The parts launchAttention() and launchAttentionBackward() choose from. Private to attention*.cu.
//
// Arguments were checked, there is at least one token, head_dim is at most kMaxHeadDim.
//
// Threads  Engine thread.
// Errors   Those of launchKernel().

#pragma once

#include "core/device/ops.h"
#include "gpu/ops/attention_choice.h"

#include <millrace/status.h>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

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

Status launchAttentionMma(const AttentionArgs& args, AttentionChoice& choice, cudaStream_t stream);
Status launchAttentionBackwardMma(
    const AttentionBackwardArgs& args, AttentionChoice& choice, cudaStream_t stream);

// Calls f<head_dim>(). Precondition: hasMmaForm(headDim).
template <typename F>
Status withHeadDim(int headDim, const F& f)
{
    switch (headDim) {
    case 64:
        return f.template operator()<64>();
    case 80:
        return f.template operator()<80>();
    case 96:
        return f.template operator()<96>();
    case 128:
        return f.template operator()<128>();
    default:
        return f.template operator()<256>();
    }
}

// Calls f<rows>(). Precondition: rows is one of attentionRows(kKernel, kDim).
template <AttentionKernel kKernel, int kDim, std::size_t kIndex = 0, typename F>
Status withRows(int rows, const F& f)
{
    constexpr std::span<const int> kRows = attentionRows(kKernel, kDim);
    if constexpr (kIndex + 1 < kRows.size())
        if (rows != kRows[kIndex])
            return withRows<kKernel, kDim, kIndex + 1>(rows, f);
    return f.template operator()<kRows[kIndex]>();
}

} // namespace mr::gpu
