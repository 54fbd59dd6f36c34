// The functions of gpu/ptx.cuh in plain C++; that header documents them.
//
// Stands before that header on the include path of mr_simt. Its own checks: 16-byte alignment of
// every row, and that a whole warp calls from one line.

#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>

namespace mr::gpu {

inline constexpr bool kMultipliesBf16 = true;

inline void cpAsync16(void* shared, const void* global, bool valid)
{
    simt::copyAsync(shared, global, valid);
}

inline void cpAsyncCommit()
{
    simt::closeCopies();
}

template <int kPending>
inline void cpAsyncWait()
{
    simt::waitForCopies(kPending);
}

inline void ldmatrix4(std::uint32_t (&r)[4], const void* shared,
    const mr::simt::CallSite& where = mr::simt::CallSite::current())
{
    simt::loadMatrices(r, shared, false, where);
}

inline void ldmatrix4Trans(std::uint32_t (&r)[4], const void* shared,
    const mr::simt::CallSite& where = mr::simt::CallSite::current())
{
    simt::loadMatrices(r, shared, true, where);
}

inline void mmaBf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
    const mr::simt::CallSite& where = mr::simt::CallSite::current())
{
    simt::multiplyFragments(d, a, b, where);
}

// A NaN becomes the one that the instruction gives.
inline std::uint32_t packBf16(float low, float high)
{
    const auto round = [](float x) -> std::uint32_t {
        const auto bits = std::bit_cast<std::uint32_t>(x);
        return x != x ? 0x7fffU : (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    };
    return round(low) | (round(high) << 16);
}

inline void storeGlobal(void* to, uint4 bits)
{
    *static_cast<uint4*>(to) = bits;
}

inline void storeGlobal(void* to, uint2 bits)
{
    *static_cast<uint2*>(to) = bits;
}

// Without numbers below 2^-126.
inline float exp2Fast(float x)
{
    const float power = exp2f(x);
    return power < 0x1p-126F ? 0.0F : power;
}

inline unsigned unpredictable(unsigned x)
{
    return x;
}

} // namespace mr::gpu
