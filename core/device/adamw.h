// AdamW on host memory, and the written order of operations every device follows to the bit.
//
// The master weight is F32, kept as two halves: `high`, the weight as BF16 (and so the source
// of an upload, with no staging copy), and `low`, the rest. high = upper 16 bits of the master
// rounded half up; low = master bits - (high << 16) as a signed 16-bit number. Lossless:
//     bits = (high << 16) + low        (modulo 2^32)
//
// One element, all in F32, IEEE rounding, no contraction beyond the fma that are written:
//     g  = grad * clipFactor
//     p  = decayed ? p * decay : p
//     m  = fma(oneMinusBeta1, g, beta1 * m)
//     v  = fma(oneMinusBeta2 * g, g, beta2 * v)
//     d  = fma(sqrt(v), inverseSqrtBias2, eps)
//     p  = fma(-stepSize, m / d, p)
// Source: Loshchilov and Hutter, "Decoupled weight decay regularization", algorithm 2; eps
// outside the root and after the correction, as PyTorch. StepScalars::finite == 0 does nothing.
//
// Threads  Pure functions over the ranges they are given; FTZ and DAZ must be off.
// Errors   none; x86-64-v3 (AVX2, FMA) is required and checked at program start.

#pragma once

#include "core/device/ops.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mr {

struct AdamwSettings {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weightDecay = 0.01;
};

// `count`: this update is the count-th of its owner, from 1. `stride`: it stands for so many of
// them, and `count` is that of the last: moments fade by beta^stride. The learning rate is as
// given.
AdamwFactors adamwFactors(
    const AdamwSettings& settings, double learningRate, std::int64_t count, int stride = 1);

inline std::uint16_t highHalf(float master) noexcept
{
    return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(master) + 0x8000U) >> 16);
}

inline std::int16_t lowHalf(float master) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(master);
    return static_cast<std::int16_t>(
        static_cast<std::uint16_t>(bits - (static_cast<std::uint32_t>(highHalf(master)) << 16)));
}

inline float joinHalves(std::uint16_t high, std::int16_t low) noexcept
{
    return std::bit_cast<float>((static_cast<std::uint32_t>(high) << 16) +
                                static_cast<std::uint32_t>(static_cast<std::int32_t>(low)));
}

// m / d of one element, whose moments become those of this update.
inline float adamwRatio(float g, float& m, float& v, const AdamwFactors& f) noexcept
{
    m = std::fma(f.oneMinusBeta1, g, f.beta1 * m);
    v = std::fma(f.oneMinusBeta2 * g, g, f.beta2 * v);
    return m / std::fma(std::sqrt(v), f.inverseSqrtBias2, f.eps);
}

// The ranges of one call; all of the same length.
struct AdamwRange {
    std::uint16_t* high = nullptr;
    std::int16_t* low = nullptr;
    float* m = nullptr;
    float* v = nullptr;
    const void* grad = nullptr; // BF16 (as uint16) or F32
    DType gradType = DType::BF16;
    std::size_t count = 0;
};

// One thread; vectorised with run-time dispatch, the same bits with every instruction set and
// for every cut of a range.
void adamwUpdate(
    const AdamwRange& range, const AdamwFactors& factors, float clipFactor, bool decayed) noexcept;

} // namespace mr
