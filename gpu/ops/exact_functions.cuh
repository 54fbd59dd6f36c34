// Exponential, sigmoid and softplus of IEEE operations alone: the bits are the same on every card,
// and exp and sigmoid have those of core/device/cpu/ops/number.h, which gives source and errors.
//
// The toolkit's expf uses ex2.approx, whose last bits are the card's choice; a convolution or a
// state whose rows come in several calls should not depend on it.

#pragma once

#include "gpu/device_math.cuh"

namespace mr::gpu {

__device__ inline float exactExp(float x)
{
    const float low = x < -110.0F ? -110.0F : x;
    const float clamped = low > 100.0F ? 100.0F : low;
    const float shifted = __fmaf_rn(clamped, 1.44269504088896341F, 12582912.0F);
    const float k = shifted - 12582912.0F;
    float r = __fmaf_rn(-k, 0.693359375F, clamped);
    r = __fmaf_rn(-k, -2.12194440e-4F, r);
    float p = 1.0F / 5040.0F;
    p = __fmaf_rn(p, r, 1.0F / 720.0F);
    p = __fmaf_rn(p, r, 1.0F / 120.0F);
    p = __fmaf_rn(p, r, 1.0F / 24.0F);
    p = __fmaf_rn(p, r, 1.0F / 6.0F);
    p = __fmaf_rn(p, r, 0.5F);
    p = __fmaf_rn(p, r, 1.0F);
    p = __fmaf_rn(p, r, 1.0F);
    const int n = static_cast<int>(__float_as_uint(shifted)) - 0x4B400000;
    const int half = n >> 1;
    const float first = __int_as_float((half + 127) << 23);
    const float second = __int_as_float((n - half + 127) << 23);
    return p * first * second;
}

__device__ inline float exactSigmoid(float x)
{
    return __fdiv_rn(1.0F, 1.0F + exactExp(-x));
}

// log(1 + exp(x)), or x above 20. With u = 1 + e rounded, log(u) e / (u - 1) has the error of a few
// roundings (Kahan, HP-15C Advanced Functions Handbook, appendix).
__device__ inline float exactSoftplus(float x)
{
    if (x > 20.0F)
        return x;
    const float e = exactExp(x);
    const float u = 1.0F + e;
    return u > 1.0F ? logf(u) * __fdiv_rn(e, u - 1.0F) : e;
}

} // namespace mr::gpu
