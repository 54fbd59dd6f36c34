// delta = row sums of out * gradOut, by head: the part of the softmax gradient that a row's keys
// share. Its own kernel, because every tile of keys asks for it again.

#include "gpu/device_math.cuh"
#include "gpu/launch.h"
#include "gpu/ops/attention_paths.h"

#include <cstdint>

namespace mr::gpu {
namespace {

constexpr int kDeltaRows = 8; // a warp each

// out, gradOut (rows, headDim), delta (rows); a row is a head of a token.
template <typename T>
__global__ void __launch_bounds__(kDeltaRows* kWarp) attentionDeltaKernel(const T* __restrict__ out,
    const T* __restrict__ gradOut, float* __restrict__ delta, std::int64_t rows, int headDim)
{
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const std::int64_t row =
        std::int64_t{blockIdx.x} * kDeltaRows + static_cast<int>(threadIdx.x) / kWarp;
    if (row >= rows) // a whole warp
        return;
    float sum = 0.0F;
    for (int d = lane; d < headDim; d += kWarp)
        sum = fmaf(toFloat(out[row * headDim + d]), toFloat(gradOut[row * headDim + d]), sum);
    sum = warpSum(sum);
    if (lane == 0)
        delta[row] = sum;
}

template <typename T>
Status launch(const AttentionBackwardArgs& args, cudaStream_t stream)
{
    const std::int64_t rows = args.delta.count();
    return launchKernel("attentionDelta", listed<attentionDeltaKernel<T>>(),
        {dim3(blocksFor(rows, kDeltaRows)), dim3(kDeltaRows * kWarp)}, stream,
        args.out.as<const T>(), args.gradOut.as<const T>(), args.delta.as<float>(), rows,
        args.headDim);
}

} // namespace

Status launchAttentionDelta(const AttentionBackwardArgs& args, cudaStream_t stream)
{
    return args.qkv.dtype == DType::BF16 ? launch<Bf16>(args, stream) : launch<float>(args, stream);
}

} // namespace mr::gpu
