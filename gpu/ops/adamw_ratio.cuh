// AdamW's quotient of one element, bit for bit as core/device/adamw.h has it.

#pragma once

#include "core/device/adamw_factors.h"

#include <cuda_runtime.h>

namespace mr::gpu {

// m / d; the moments become those of this update.
__device__ inline float adamwRatio(float g, float& m, float& v, const AdamwFactors& f)
{
    m = __fmaf_rn(f.oneMinusBeta1, g, f.beta1 * m);
    v = __fmaf_rn(f.oneMinusBeta2 * g, g, f.beta2 * v);
    return __fdiv_rn(m, __fmaf_rn(__fsqrt_rn(v), f.inverseSqrtBias2, f.eps));
}

} // namespace mr::gpu
