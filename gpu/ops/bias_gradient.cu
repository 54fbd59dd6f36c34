// gradBias (+)= the sum of gradOut by rows: the half of linearBackwardWeight that is no matrix
// product. How it is cut stands in column_sums.cuh.

#include "gpu/ops/column_sums.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

struct Plain {
    static __device__ float add(float sum, float value) { return sum + value; }
};

} // namespace

Status launchBiasGradient(const LinearBackwardWeightArgs& args, cudaStream_t stream)
{
    return args.gradOut.dtype == DType::BF16
               ? launchColumnSums<Plain, Bf16>(
                     "biasGradient", args.gradOut, args.gradBias, args.accumulate, stream)
               : launchColumnSums<Plain, float>(
                     "biasGradient", args.gradOut, args.gradBias, args.accumulate, stream);
}

} // namespace mr::gpu
