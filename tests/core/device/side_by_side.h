// AdamW on the plain and on the compact state, with the same gradients: how far they part.

#pragma once

#include "core/device/compact_arrays.h"

namespace mr::test {

// Gradients are normal numbers times sizes that are log-normal (sigma 1) by element.
class SideBySide
{
public:
    explicit SideBySide(double gradientScale)
        : m_compact(kCount)
        , m_high(kCount)
        , m_low(kCount)
        , m_m(kCount)
        , m_v(kCount)
    {
        const Plain zeros(kCount);
        std::vector<float> start(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            m_sizes.push_back(gradientScale * std::exp(normal()));
            start[i] = static_cast<float>(0.02 * normal());
            m_high[i] = highHalf(start[i]);
            m_low[i] = lowHalf(start[i]);
        }
        encodeCompact(start.data(), zeros.m.data(), zeros.v.data(), m_compact.all());
    }

    void run(int steps, RootCodes codes)
    {
        for (int step = 1; step <= steps; ++step)
            runStep(adamwFactors({0.9, 0.999, 1e-8, 0.0}, kLr, step), codes);
    }

    double largestUpdate() const { return m_largest; } // compact state, in lr
    double error() const { return m_error; }           // last update, relative L2

private:
    static constexpr std::size_t kCount = 16384;
    static constexpr double kLr = 1e-3;

    // Twelve uniforms: the same numbers with every library.
    double normal()
    {
        double sum = -6.0;
        for (int i = 0; i < 12; ++i)
            sum += static_cast<double>(m_engine()) / 4294967296.0;
        return sum;
    }

    void runStep(const AdamwFactors& factors, RootCodes codes)
    {
        std::vector<float> grad(kCount);
        for (std::size_t i = 0; i < kCount; ++i)
            grad[i] = static_cast<float>(m_sizes[i] * normal());
        const Plain before = decoded(m_compact);
        std::vector<float> plainBefore(kCount);
        for (std::size_t i = 0; i < kCount; ++i)
            plainBefore[i] = joinHalves(m_high[i], m_low[i]);
        adamwUpdate(
            {m_high.data(), m_low.data(), m_m.data(), m_v.data(), grad.data(), DType::F32, kCount},
            factors, 1.0F, false);
        if (codes == RootCodes::Any)
            updateInOrder(m_compact, grad, factors, 1.0F, false, codes);
        else
            adamwCompactUpdate(m_compact.all(), grad.data(), DType::F32, factors, 1.0F, false);
        compare(before, plainBefore);
    }

    void compare(const Plain& before, const std::vector<float>& plainBefore)
    {
        const Plain after = decoded(m_compact);
        double difference = 0.0;
        double length = 0.0;
        for (std::size_t i = 0; i < kCount; ++i) {
            const double got = wide(after.master[i]) - wide(before.master[i]);
            const double want = wide(joinHalves(m_high[i], m_low[i])) - wide(plainBefore[i]);
            m_largest = std::max(m_largest, std::fabs(got) / kLr);
            difference += (got - want) * (got - want);
            length += want * want;
        }
        m_error = std::sqrt(difference / length);
    }

    std::mt19937 m_engine{1}; // NOLINT: the same in every run
    CompactArrays m_compact;
    std::vector<std::uint16_t> m_high;
    std::vector<std::int16_t> m_low;
    std::vector<float> m_m;
    std::vector<float> m_v;
    std::vector<double> m_sizes;
    double m_largest = 0.0;
    double m_error = 0.0;
};

} // namespace mr::test
