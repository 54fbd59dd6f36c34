// The planes of a range of masters in each of their formats (core/device/light_update.h,
// MasterPlanes), read and stepped in packs.
//
// Random16 takes packs of 8 elements, because a block of Philox has the bits of 8.

#pragma once

#include "core/device/light_update.h"
#include "gpu/ops/master24.cuh"
#include "gpu/ops/master_halves.cuh"
#include "gpu/ops/packs.cuh"
#include "gpu/ops/philox.cuh"

#include <type_traits>

namespace mr::gpu {

// Elements of a pack, and how many packs a thread reads at once.
template <MasterPlanes kFormat>
inline constexpr int kMasterPack = kFormat == MasterPlanes::Random16 ? 8 : 4;
template <MasterPlanes kFormat>
inline constexpr int kMasterUnroll = kFormat == MasterPlanes::Random16 ? 1 : 2;

// The 16 random bits of element i of a pack.
template <int kCount>
__device__ std::uint32_t randomBitsOf(const uint4& words, std::int64_t element, int i)
{
    static_assert(kCount == 1 || kCount == 8);
    const int place = kCount == 1 ? static_cast<int>(element % 8) : i;
    const std::uint32_t low = (place & 2) != 0 ? words.y : words.x;
    const std::uint32_t high = (place & 2) != 0 ? words.w : words.z;
    const std::uint32_t word = (place & 4) != 0 ? high : low;
    return (place & 1) != 0 ? word >> 16 : word & 0xffffU;
}

// Cut after the bits were added. A NaN stays one.
__device__ inline std::uint16_t roundedBy(float p, std::uint32_t random)
{
    const std::uint32_t bits = __float_as_uint(p);
    const bool isNan = (bits & 0x7fffffffU) > 0x7f800000U;
    return static_cast<std::uint16_t>((isNan ? bits : bits + random) >> 16);
}

// high, low: (n), from element `first` of a weight on
template <MasterPlanes kFormat>
struct Masters {
    using Low = std::conditional_t<kFormat == MasterPlanes::Halves, std::int16_t, std::int8_t>;

    std::uint16_t* high;
    Low* low;
    std::int64_t first;
    std::uint64_t key;
    std::uint64_t counter;

    template <int kCount>
    struct Held {
        Pack<std::uint16_t, kCount> high;
        Pack<Low, kCount> low;
    };

    template <int kCount>
    __device__ void load(std::int64_t at, Held<kCount>& held) const
    {
        held.high = loadPack<kCount>(high + at);
        if constexpr (kFormat != MasterPlanes::Random16)
            held.low = loadPack<kCount>(low + at);
    }

    // next(i, p): what master p of element i of the pack becomes.
    template <int kCount, typename Next>
    __device__ void step(std::int64_t at, const Held<kCount>& held, const Next& next) const
    {
        Held<kCount> to = held;
        if constexpr (kFormat == MasterPlanes::Random16) {
            const std::int64_t element = first + at;
            const uint4 words = philoxWords(key, static_cast<std::uint64_t>(element / 8), counter);
#pragma unroll
            for (int i = 0; i < kCount; ++i)
                to.high.at[i] = roundedBy(next(i, toFloat(Bf16{held.high.at[i]})),
                    randomBitsOf<kCount>(words, element, i));
        } else {
#pragma unroll
            for (int i = 0; i < kCount; ++i)
                splitMaster(next(i, joinMaster(held.high.at[i], held.low.at[i])), to.high.at[i],
                    to.low.at[i]);
            storePack(low + at, to.low);
        }
        storePack(high + at, to.high);
    }
};

// The planes of the arguments of an op.
template <MasterPlanes kFormat, typename Args>
Masters<kFormat> mastersOf(const Args& args)
{
    using Low = typename Masters<kFormat>::Low;
    return {args.high.template as<std::uint16_t>(), args.low.template as<Low>(), args.first,
        args.key, args.counter};
}

} // namespace mr::gpu
