// Philox 4x32-10: counter-based random numbers, so a value depends on its key and position alone
// and not on tiling, tier, or the number of threads.
//
// Source   Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11).
// Threads  Pure.

#pragma once

#include <array>
#include <cstdint>

namespace mr {

// The block at `counter` of the stream `key`; four words, independent of all others.
constexpr std::array<std::uint32_t, 4> philox(
    std::uint64_t key, std::uint64_t counterLow, std::uint64_t counterHigh = 0) noexcept
{
    constexpr std::uint32_t kMultiplier0 = 0xD2511F53U;
    constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57U;
    constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
    constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
    std::array<std::uint32_t, 4> c{static_cast<std::uint32_t>(counterLow),
        static_cast<std::uint32_t>(counterLow >> 32), static_cast<std::uint32_t>(counterHigh),
        static_cast<std::uint32_t>(counterHigh >> 32)};
    auto k0 = static_cast<std::uint32_t>(key);
    auto k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = std::uint64_t{kMultiplier0} * c[0];
        const std::uint64_t p1 = std::uint64_t{kMultiplier1} * c[2];
        c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
            static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
        k0 += kWeyl0;
        k1 += kWeyl1;
    }
    return c;
}

} // namespace mr
