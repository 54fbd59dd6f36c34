// A master weight in 24 bits, bit for bit as core/device/master24.h has it; a NaN stays one.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mr::gpu {

// A NaN becomes `lowest`.
__device__ inline float clampTo(float x, float lowest, float highest)
{
    const float above = x > lowest ? x : lowest;
    return above < highest ? above : highest;
}

// 2 to the exponent of a BF16, at least 2^-126.
__device__ inline float unitOf(std::uint32_t upper)
{
    const std::uint32_t exponent = upper & 0x7f800000U;
    return __uint_as_float(exponent > 0x00800000U ? exponent : 0x00800000U);
}

// 1 / unit, exact; 0 from 2^127.
__device__ inline float inverseUnitOf(std::uint32_t upper)
{
    return __uint_as_float(0x7f000000U - __float_as_uint(unitOf(upper)));
}

// BF16, nearest even, as the upper half of a word. Not cvt: it makes another NaN.
__device__ inline std::uint32_t roundedWeight(float p)
{
    const std::uint32_t bits = __float_as_uint(p);
    const bool isNan = (bits & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = isNan ? bits | 0x00400000U : bits + 0x7fffU + ((bits >> 16) & 1U);
    return rounded & 0xffff0000U;
}

__device__ inline float joinMaster(std::uint16_t weight, std::int8_t rest)
{
    const std::uint32_t upper = static_cast<std::uint32_t>(weight) << 16;
    const float step = unitOf(upper) * (1.0F / 32512.0F);
    return __fmaf_rn(static_cast<float>(rest), step, __uint_as_float(upper));
}

__device__ inline void splitMaster(float master, std::uint16_t& weight, std::int8_t& rest)
{
    const std::uint32_t upper = roundedWeight(master);
    const float past = master - __uint_as_float(upper);
    const float steps = past * inverseUnitOf(upper) * 32512.0F;
    weight = static_cast<std::uint16_t>(upper >> 16);
    rest = static_cast<std::int8_t>(__float2int_rn(clampTo(steps, -127.0F, 127.0F)));
}

} // namespace mr::gpu
