// Sums over rows in a fixed order: 16 lanes, lane l takes elements l, l + 16, ... in order,
// then lanes 16 -> 8 -> 4 -> 2 -> 1 by adding the upper half to the lower.
//
// One order for every instruction set and device: AVX2 holds the lanes in two registers.

#pragma once

#include "core/device/cpu/ops/number.h"

// The baseline is x86-64-v3, which has no AES; Highway would fall back to SSE2 for that.
#ifndef HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLE_PCLMUL_AES
#endif
#include <hwy/highway.h>

#include <array>
#include <cstdint>

namespace mr::cpu {

namespace hn = hwy::HWY_NAMESPACE;
using Simd = hn::CappedTag<float, 8>; // 8 lanes with AVX2, fewer on lesser machines
using Vec = hn::Vec<Simd>;
inline constexpr std::int64_t kLanes = 16;
inline constexpr auto kVecLanes = static_cast<std::int64_t>(hn::MaxLanes(Simd()));

inline Vec loadLanes(const float* p) noexcept
{
    return hn::LoadU(Simd(), p);
}

inline Vec loadLanes(const Bf16* p) noexcept
{
    const hn::Rebind<std::uint16_t, Simd> half;
    const hn::Rebind<std::uint32_t, Simd> word;
    const auto bits = hn::PromoteTo(word, hn::LoadU(half, &p->bits));
    return hn::BitCast(Simd(), hn::ShiftLeft<16>(bits));
}

// The 16 lanes of a running sum.
class LaneSum
{
public:
    static constexpr std::int64_t kVecs = kLanes / kVecLanes;

    void addSquare(Vec x, std::int64_t v) noexcept { m_acc[v] = hn::MulAdd(x, x, m_acc[v]); }

    void addProduct(Vec x, Vec y, std::int64_t v) noexcept
    {
        m_acc[v] = hn::MulAdd(x, y, m_acc[v]);
    }

    void add(Vec x, std::int64_t v) noexcept { m_acc[v] = hn::Add(m_acc[v], x); }

    // Element `lane` of the tail, past the last whole 16.
    std::array<float, kLanes> lanes() const noexcept
    {
        std::array<float, kLanes> all;
        for (std::int64_t v = 0; v < kVecs; ++v)
            hn::StoreU(m_acc[v], Simd(), all.data() + v * kVecLanes);
        return all;
    }

private:
    Vec m_acc[kVecs] = {hn::Zero(Simd()), hn::Zero(Simd())};
};

inline float joinLanes(std::array<float, kLanes> lanes) noexcept
{
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

// sum of x[i]^2
template <typename T>
float sumSquares(const T* x, std::int64_t n) noexcept
{
    LaneSum sum;
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::int64_t v = 0; v < LaneSum::kVecs; ++v)
            sum.addSquare(loadLanes(x + i + v * kVecLanes), v);
    auto lanes = sum.lanes();
    for (std::size_t l = 0; l < kLanes && i < n; ++i, ++l)
        lanes[l] = std::fma(toFloat(x[i]), toFloat(x[i]), lanes[l]);
    return joinLanes(lanes);
}

// sum of x[i] y[i]
template <typename T, typename U>
float sumProducts(const T* x, const U* y, std::int64_t n) noexcept
{
    LaneSum sum;
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::int64_t v = 0; v < LaneSum::kVecs; ++v)
            sum.addProduct(loadLanes(x + i + v * kVecLanes), loadLanes(y + i + v * kVecLanes), v);
    auto lanes = sum.lanes();
    for (std::size_t l = 0; l < kLanes && i < n; ++i, ++l)
        lanes[l] = std::fma(toFloat(x[i]), toFloat(y[i]), lanes[l]);
    return joinLanes(lanes);
}

// sum of x[i] (y[i] + offset) z[i], the factors before the last rounded first
template <typename T>
float sumTriples(const T* x, const T* y, float offset, const T* z, std::int64_t n) noexcept
{
    const Vec offsets = hn::Set(Simd(), offset);
    LaneSum sum;
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::int64_t v = 0; v < LaneSum::kVecs; ++v) {
            const std::int64_t at = i + v * kVecLanes;
            const Vec gains = hn::Add(loadLanes(y + at), offsets);
            sum.addProduct(hn::Mul(loadLanes(x + at), gains), loadLanes(z + at), v);
        }
    auto lanes = sum.lanes();
    for (std::size_t l = 0; l < kLanes && i < n; ++i, ++l)
        lanes[l] = std::fma(toFloat(x[i]) * (toFloat(y[i]) + offset), toFloat(z[i]), lanes[l]);
    return joinLanes(lanes);
}

// sum of x[i]
inline float sumLanes(const float* x, std::int64_t n) noexcept
{
    LaneSum sum;
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::int64_t v = 0; v < LaneSum::kVecs; ++v)
            sum.add(loadLanes(x + i + v * kVecLanes), v);
    auto lanes = sum.lanes();
    for (std::size_t l = 0; l < kLanes && i < n; ++i, ++l)
        lanes[l] += x[i];
    return joinLanes(lanes);
}

// The largest x[i]; -infinity for n = 0. Any order gives the same.
inline float maxOf(const float* x, std::int64_t n) noexcept
{
    Vec top = hn::Set(Simd(), -HUGE_VALF);
    std::int64_t i = 0;
    constexpr std::int64_t kStep = kVecLanes;
    for (; i + kStep <= n; i += kStep)
        top = hn::Max(top, loadLanes(x + i));
    float best = hn::GetLane(hn::MaxOfLanes(Simd(), top));
    for (; i < n; ++i)
        best = x[i] > best ? x[i] : best;
    return best;
}

} // namespace mr::cpu
