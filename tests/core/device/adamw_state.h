// The state of one AdamW range with values of every kind, and the update one element at a time.

#pragma once

#include "core/device/adamw.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace mr::test {

struct AdamwState {
    std::vector<std::uint16_t> high;
    std::vector<std::int16_t> low;
    std::vector<float> m;
    std::vector<float> v;
    std::vector<std::uint16_t> grad16;
    std::vector<float> grad32;

    // Weights, moments and gradients over many magnitudes, denormals and zeros among them.
    AdamwState(std::size_t count, unsigned seed)
    {
        std::mt19937 engine(seed);
        const auto value = [&](int lowest, int highest) {
            const int span = highest - lowest + 1;
            const int exponent = lowest + static_cast<int>(engine() % static_cast<unsigned>(span));
            const float mantissa = 1.0F + static_cast<float>(engine() & 0x7FFFFFU) / 8388608.0F;
            const float magnitude = std::ldexp(mantissa, exponent);
            return engine() % 32 == 0 ? 0.0F : (engine() & 1U) ? -magnitude : magnitude;
        };
        for (std::size_t i = 0; i < count; ++i) {
            const float p = value(-130, 8);
            high.push_back(highHalf(p));
            low.push_back(lowHalf(p));
            m.push_back(value(-140, 2));
            v.push_back(std::fabs(value(-145, 4)));
            grad32.push_back(value(-60, 4));
            grad16.push_back(highHalf(value(-130, 4)));
        }
    }

    AdamwRange range(DType type, std::size_t first, std::size_t count)
    {
        const void* grad = type == DType::F32 ? static_cast<const void*>(grad32.data() + first)
                                              : static_cast<const void*>(grad16.data() + first);
        return {high.data() + first, low.data() + first, m.data() + first, v.data() + first, grad,
            type, count};
    }

    // Master, moments; of all elements, to the bit.
    bool equals(const AdamwState& other) const
    {
        const auto same = [](const auto& a, const auto& b) {
            return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(),
                                                             a.size() * sizeof(a.front())) == 0);
        };
        return same(high, other.high) && same(low, other.low) && same(m, other.m) &&
               same(v, other.v);
    }
};

// The written order of adamw.h, once more and by itself.
inline void referenceUpdate(AdamwState& s, DType type, const AdamwFactors& f, float clipFactor,
    bool decayed, std::size_t first, std::size_t count)
{
    for (std::size_t i = first; i < first + count; ++i) {
        const float raw = type == DType::F32
                              ? s.grad32[i]
                              : std::bit_cast<float>(static_cast<std::uint32_t>(s.grad16[i]) << 16);
        const float g = raw * clipFactor;
        float p = joinHalves(s.high[i], s.low[i]);
        if (decayed)
            p = p * f.decay;
        const float oldM = f.beta1 * s.m[i];
        s.m[i] = std::fma(f.oneMinusBeta1, g, oldM);
        const float oldV = f.beta2 * s.v[i];
        const float scaled = f.oneMinusBeta2 * g;
        s.v[i] = std::fma(scaled, g, oldV);
        const float d = std::fma(std::sqrt(s.v[i]), f.inverseSqrtBias2, f.eps);
        const float quotient = s.m[i] / d;
        p = std::fma(-f.stepSize, quotient, p);
        s.high[i] = highHalf(p);
        s.low[i] = lowHalf(p);
    }
}

} // namespace mr::test
