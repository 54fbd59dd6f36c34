#include "gpu/add_bias.h"
#include "gpu/device_math.cuh"
#include "gpu/launch.h"

namespace mr::gpu {

namespace {

constexpr int kThreads = 256;

// One thread an element: expected to be small beside the product before it.
template <typename Out, typename Bias>
__global__ void addBiasKernel(Out* __restrict__ out, const Bias* __restrict__ bias,
    std::int64_t count, std::int64_t cols, bool add)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= count)
        return;
    const float b = toFloat(bias[i % cols]);
    out[i] = fromFloat<Out>(add ? toFloat(out[i]) + b : b);
}

template <typename Out, typename Bias>
Status launch(const TensorView& out, const TensorView& bias, bool add, cudaStream_t stream)
{
    const LaunchShape shape{dim3(blocksFor(out.count(), kThreads)), dim3(kThreads)};
    return launchKernel("addBias", listed<addBiasKernel<Out, Bias>>(), shape, stream, out.as<Out>(),
        bias.as<const Bias>(), out.count(), bias.count(), add);
}

} // namespace

Status launchAddBias(const TensorView& out, const TensorView& bias, bool add, cudaStream_t stream)
{
    if (out.dtype == DType::BF16)
        return launch<Bf16, Bf16>(out, bias, add, stream);
    return bias.dtype == DType::F32 ? launch<float, float>(out, bias, add, stream)
                                    : launch<float, Bf16>(out, bias, add, stream);
}

} // namespace mr::gpu
