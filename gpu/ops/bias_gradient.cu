// gradBias (+)= the sum of gradOut by rows. How it is cut stands in column_sums.cuh.

#include "gpu/ops/column_sums.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

struct Plain {
    static __device__ float add(float sum, float value) { return sum + value; }
};

template <typename T, typename Out>
Status biasGradient(const BiasGradientArgs& args, cudaStream_t stream)
{
    return launchColumnSums<Plain, T, Out>(
        "biasGradient", args.gradOut, args.gradBias, args.accumulate, stream);
}

} // namespace

Status launchBiasGradient(const BiasGradientArgs& args, cudaStream_t stream)
{
    if (args.gradBias.dtype == DType::BF16)
        return biasGradient<Bf16, Bf16>(args, stream);
    return args.gradOut.dtype == DType::BF16 ? biasGradient<Bf16, float>(args, stream)
                                             : biasGradient<float, float>(args, stream);
}

} // namespace mr::gpu
