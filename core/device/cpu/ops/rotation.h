// The rotation of one head by rotary positions, in place. RopeArgs in core/device/ops.h defines it.
//
// Threads  Pure.

#pragma once

#include "core/device/cpu/ops/number.h"

#include <cstdint>

namespace mr::cpu {

// The angles of one position: cosine and sine (half). sign -1 rotates back.
struct HeadAngles {
    const float* cosine;
    const float* sine;
    std::int64_t half;
    float sign;
};

// `Args` has positions, cosTable, sinTable and rotaryDim of RopeArgs.
template <typename Args>
HeadAngles anglesOf(const Args& args, std::int64_t row, bool inverse) noexcept
{
    const std::int64_t half = args.rotaryDim / 2;
    const std::int64_t at = args.positions.template as<const std::int32_t>()[row] * half;
    return {args.cosTable.template as<const float>() + at,
        args.sinTable.template as<const float>() + at, half, inverse ? -1.0F : 1.0F};
}

template <typename T>
void rotateHead(T* head, const HeadAngles& angles) noexcept
{
    const auto [cosine, sine, half, sign] = angles;
    T* low = head;
    T* high = head + half;
#pragma GCC ivdep // the two halves do not overlap
    for (std::int64_t i = 0; i < half; ++i) {
        const float a = toFloat(low[i]);
        const float b = toFloat(high[i]);
        const float s = sign * sine[i];
        low[i] = fromFloat<T>(a * cosine[i] - b * s);
        high[i] = fromFloat<T>(b * cosine[i] + a * s);
    }
}

} // namespace mr::cpu
