// Rows as the delta rule reads them, forward and backward: documents, gates, normed keys.
//
// The formulas are those of GatedDeltaArgs in core/device/recurrent_ops.h.
//
// Threads  Pure; callers fork.

#pragma once

#include "core/device/cpu/ops/delta_kernel.h"
#include "core/device/cpu/ops/gemm_kernel.h"
#include "core/device/cpu/ops/lanes.h"
#include "core/device/ops.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mr::cpu {

// First rows of all documents, then the number of rows.
inline void listDocuments(const TensorView& documentFrom, std::vector<std::int64_t>& starts)
{
    starts.clear();
    const std::int64_t rows = documentFrom.dims[0];
    for (std::int64_t t = 0; t < rows; ++t)
        if (t == 0 || documentFrom.as<const std::int32_t>()[t] == t)
            starts.push_back(t);
    starts.push_back(rows);
}

// Each is rounded once: a decay that errs to one side does so for every row of a document.
struct DeltaGate {
    float beta;
    float rate;  // exp(logDecay)
    float slope; // of softplus
    float g;
    float decay; // exp(g)
};

// Sizes in scratch: rows of keys and values with their padding.
struct DeltaSizes {
    std::int64_t keyDim, valueDim;
    std::int64_t keyRow;   // a multiple of kPanel
    std::int64_t valueRow; // a multiple of kDeltaStrip

    explicit DeltaSizes(const DeltaShape& shape) noexcept
        : keyDim(shape.keyDim)
        , valueDim(shape.valueDim)
        , keyRow(paddedToPanel(keyDim))
        , valueRow(paddedToStrip(valueDim))
    {
    }

    std::int64_t stateFloats() const noexcept { return keyRow * valueRow; }
};

// A state as deltaRows() takes it, (strips, keyDim, kDeltaStrip), from and to a dense one.
inline void stateToStrips(const DeltaSizes& s, const float* state, float* strips) noexcept
{
    for (std::int64_t first = 0; first < s.valueRow; first += kDeltaStrip)
        for (std::int64_t i = 0; i < s.keyDim; ++i, strips += kDeltaStrip)
            for (std::int64_t c = 0; c < kDeltaStrip; ++c)
                strips[c] = first + c < s.valueDim ? state[i * s.valueDim + first + c] : 0.0F;
}

inline void stateFromStrips(const DeltaSizes& s, const float* strips, float* state) noexcept
{
    for (std::int64_t first = 0; first < s.valueRow; first += kDeltaStrip)
        for (std::int64_t i = 0; i < s.keyDim; ++i, strips += kDeltaStrip)
            std::copy(strips, strips + std::min(kDeltaStrip, s.valueDim - first),
                state + i * s.valueDim + first);
}

// deltaRows() for all strips of a head.
inline void deltaHead(DeltaRows rows, const DeltaSizes& s) noexcept
{
    for (std::int64_t first = 0; first < s.valueRow; first += kDeltaStrip) {
        deltaRows(rows);
        rows.value += kDeltaStrip;
        rows.out += rows.out ? kDeltaStrip : 0;
        rows.change += rows.change ? kDeltaStrip : 0;
        rows.state += s.keyDim * kDeltaStrip;
    }
}

template <typename T>
class DeltaReader
{
public:
    template <typename Args>
    explicit DeltaReader(const Args& args) noexcept
        : m_shape(args.shape)
        , m_sizes(args.shape)
        , m_mixed(args.mixed.template as<const T>())
        , m_gates(args.gates.template as<const T>() + args.firstGate)
        , m_logDecay(args.logDecay.template as<const T>())
        , m_timeBias(args.timeBias.template as<const T>())
        , m_gateColumns(args.gates.dims[1])
    {
    }

    const DeltaShape& shape() const noexcept { return m_shape; }
    const DeltaSizes& sizes() const noexcept { return m_sizes; }
    std::int64_t group() const noexcept { return m_shape.valueHeads / m_shape.keyHeads; }

    std::int64_t queryColumn(std::int64_t keyHead) const noexcept
    {
        return keyHead * m_shape.keyDim;
    }
    std::int64_t keyColumn(std::int64_t keyHead) const noexcept
    {
        return m_shape.keyColumns() + keyHead * m_shape.keyDim;
    }
    std::int64_t valueColumn(std::int64_t head) const noexcept
    {
        return 2 * m_shape.keyColumns() + head * m_shape.valueDim;
    }

    DeltaGate gate(std::int64_t row, std::int64_t head) const noexcept
    {
        const auto numberOf = [](T x) { return static_cast<double>(toFloat(x)); };
        const auto sigmoidOf = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
        const T* gates = m_gates + row * m_gateColumns;
        const double time = numberOf(gates[m_shape.valueHeads + head]) + numberOf(m_timeBias[head]);
        const double soft = time > 20.0 ? time : std::log1p(std::exp(time));
        const double rate = std::exp(numberOf(m_logDecay[head]));
        return {static_cast<float>(sigmoidOf(numberOf(gates[head]))), static_cast<float>(rate),
            static_cast<float>(sigmoidOf(time)), static_cast<float>(-(rate * soft)),
            static_cast<float>(std::exp(-(rate * soft)))};
    }

    const T* mixed(std::int64_t row, std::int64_t column) const noexcept
    {
        return m_mixed + row * m_shape.columns() + column;
    }

    // The head at `column` of `count` rows, normed and times `scale`, to (count, keyRow); and the
    // factor of each row's norm.
    void loadNormed(std::int64_t first, std::int64_t count, std::int64_t column, float scale,
        float* to, float* factors) const noexcept
    {
        for (std::int64_t t = 0; t < count; ++t, to += m_sizes.keyRow) {
            const T* from = mixed(first + t, column);
            factors[t] = 1.0F / std::sqrt(sumSquares(from, m_sizes.keyDim) + 1e-6F);
            for (std::int64_t i = 0; i < m_sizes.keyDim; ++i)
                to[i] = (toFloat(from[i]) * factors[t]) * scale;
            std::fill(to + m_sizes.keyDim, to + m_sizes.keyRow, 0.0F);
        }
    }

    float queryScale() const noexcept
    {
        return 1.0F / std::sqrt(static_cast<float>(m_sizes.keyDim));
    }

    // Decay and beta of `count` rows.
    void loadGates(std::int64_t first, std::int64_t count, std::int64_t head, float* decay,
        float* beta) const noexcept
    {
        for (std::int64_t t = 0; t < count; ++t) {
            const DeltaGate at = gate(first + t, head);
            decay[t] = at.decay;
            beta[t] = at.beta;
        }
    }

private:
    DeltaShape m_shape;
    DeltaSizes m_sizes;
    const T* m_mixed;
    const T* m_gates;
    const T* m_logDecay;
    const T* m_timeBias;
    std::int64_t m_gateColumns;
};

} // namespace mr::cpu
