// Philox 4x32-10 on the card: the words of core/base/philox.h.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mr::gpu {

inline constexpr int kPhiloxRounds = 10;

__device__ inline uint4 philoxWords(std::uint64_t key, std::uint64_t low, std::uint64_t high)
{
    constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
    constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
    uint4 c{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
        static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
    auto k0 = static_cast<std::uint32_t>(key);
    auto k1 = static_cast<std::uint32_t>(key >> 32);
#pragma unroll
    for (int round = 0; round < kPhiloxRounds; ++round) {
        const std::uint64_t p0 = kMultiplier0 * c.x;
        const std::uint64_t p1 = kMultiplier1 * c.z;
        c = {static_cast<std::uint32_t>(p1 >> 32) ^ c.y ^ k0, static_cast<std::uint32_t>(p1),
            static_cast<std::uint32_t>(p0 >> 32) ^ c.w ^ k1, static_cast<std::uint32_t>(p0)};
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return c;
}

} // namespace mr::gpu
