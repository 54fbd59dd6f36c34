// The rotation of one head by rotary positions, in place. RopeArgs in core/device/ops.h defines it.
//
// Threads  Pure.

#pragma once

#include "core/device/cpu/ops/number.h"

#include <cstdint>

namespace mr::cpu {

// The angles of one position: cosine and sine (half). sign -1 rotates back; half 0 turns nothing.
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
    if (half == 0)
        return {nullptr, nullptr, 0, 1.0F};
    const std::int64_t at = args.positions.template as<const std::int32_t>()[row] * half;
    return {args.cosTable.template as<const float>() + at,
        args.sinTable.template as<const float>() + at, half, inverse ? -1.0F : 1.0F};
}

// One element of a pair, of itself and the other.
inline float lower(float low, float high, float cosine, float sine) noexcept
{
    return low * cosine - high * sine;
}

inline float upper(float low, float high, float cosine, float sine) noexcept
{
    return high * cosine + low * sine;
}

template <typename T>
void rotateNeighbours(T* head, const HeadAngles& angles) noexcept
{
    const auto [cosine, sine, half, sign] = angles;
    for (std::int64_t i = 0; i < half; ++i) {
        const float a = toFloat(head[2 * i]);
        const float b = toFloat(head[2 * i + 1]);
        const float s = sign * sine[i];
        head[2 * i] = fromFloat<T>(lower(a, b, cosine[i], s));
        head[2 * i + 1] = fromFloat<T>(upper(a, b, cosine[i], s));
    }
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
        low[i] = fromFloat<T>(lower(a, b, cosine[i], s));
        high[i] = fromFloat<T>(upper(a, b, cosine[i], s));
    }
}

} // namespace mr::cpu
