// The two halves of an F32 master weight, bit for bit as core/device/adamw.h has them.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mr::gpu {

__device__ inline float joinMaster(std::uint16_t high, std::int16_t low)
{
    return __uint_as_float((static_cast<std::uint32_t>(high) << 16) +
                           static_cast<std::uint32_t>(static_cast<std::int32_t>(low)));
}

// high: the upper 16 bits rounded half up; low: the rest.
__device__ inline void splitMaster(float master, std::uint16_t& high, std::int16_t& low)
{
    const std::uint32_t bits = __float_as_uint(master);
    const std::uint32_t upper = (bits + 0x8000U) >> 16;
    high = static_cast<std::uint16_t>(upper);
    low = static_cast<std::int16_t>(static_cast<std::uint16_t>(bits - (upper << 16)));
}

} // namespace mr::gpu
