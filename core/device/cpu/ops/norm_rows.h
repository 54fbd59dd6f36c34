// One row of an RMS norm, forward and backward, and the sum of the weight's partial gradients.
// The formulas are those of RmsNormArgs and RmsNormBackwardArgs in core/device/ops.h.
//
// Threads  Pure; callers fork.

#pragma once

#include "core/device/cpu/ops/lanes.h"
#include "core/device/cpu/ops/number.h"
#include "core/device/ops.h"

#include <cmath>
#include <type_traits>

namespace mr::cpu {

// The normed value as the weight meets it: see NormGain.
template <NormGain kGain, typename T>
float storedNorm(float normed) noexcept
{
    return kGain == NormGain::Weight ? rounded<T>(normed) : normed;
}

// Term that makes a gain of the weight.
template <NormGain kGain>
inline constexpr float kOffset = kGain == NormGain::Weight ? 0.0F : 1.0F;

// Returns rstd. x, weight, out (cols).
template <NormGain kGain, typename T>
float normRow(const T* x, const T* weight, T* out, std::int64_t cols, float eps) noexcept
{
    const float mean = sumSquares(x, cols) / static_cast<float>(cols);
    const float rstd = 1.0F / std::sqrt(mean + eps);
    for (std::int64_t c = 0; c < cols; ++c)
        out[c] = fromFloat<T>(
            (toFloat(weight[c]) + kOffset<kGain>)*storedNorm<kGain, T>(toFloat(x[c]) * rstd));
    return rstd;
}

// A row's tensors (cols). gradX may be grad or residual; residual null: none.
template <typename T>
struct NormGradientRow {
    const T* grad;
    const T* x;
    const T* weight;
    const T* residual;
    T* gradX;
    std::int64_t cols;
    float rstd;
};

// With n = x rstd: gradX = rstd (g w - n mean(g w n)) + residual; partial += g n.
template <NormGain kGain, typename T>
void normBackwardRow(const NormGradientRow<T>& row, float* partial) noexcept
{
    const auto [grad, x, weight, residual, gradX, cols, rstd] = row;
    const float mean =
        sumTriples(grad, weight, kOffset<kGain>, x, cols) * rstd / static_cast<float>(cols);
    for (std::int64_t c = 0; c < cols; ++c)
        partial[c] =
            std::fma(toFloat(grad[c]), storedNorm<kGain, T>(toFloat(x[c]) * rstd), partial[c]);
#pragma GCC ivdep // gradX may be grad or residual, element for element
    for (std::int64_t c = 0; c < cols; ++c) {
        const float normed = toFloat(x[c]) * rstd;
        const float gain = toFloat(weight[c]) + kOffset<kGain>;
        const float inner = std::fma(toFloat(grad[c]), gain, -(normed * mean));
        gradX[c] =
            fromFloat<T>(residual ? std::fma(rstd, inner, toFloat(residual[c])) : rstd * inner);
    }
}

// Columns [first, end) of gradWeight (cols) (+)= the rows of partial (blocks, cols) in order; does
// nothing where gradWeight has no data.
inline void joinNormPartials(const TensorView& partial, const TensorView& gradWeight,
    bool accumulate, std::int64_t first, std::int64_t end) noexcept
{
    if (gradWeight.data == nullptr)
        return;
    const std::int64_t cols = partial.dims[1];
    const auto* blocks = partial.as<const float>();
    withType(gradWeight.dtype, [&](auto* tag) {
        using Out = std::remove_pointer_t<decltype(tag)>;
        Out* out = gradWeight.as<Out>();
        for (std::int64_t c = first; c < end; ++c) {
            float sum = 0.0F;
            for (std::int64_t b = 0; b < partial.dims[0]; ++b)
                sum += blocks[b * cols + c];
            out[c] = fromFloat<Out>(accumulate ? toFloat(out[c]) + sum : sum);
        }
    });
}

// Calls fn with the gain as a constant: f([](auto tag) ...).
template <typename F>
void withGain(NormGain gain, F&& fn)
{
    if (gain == NormGain::OnePlusWeight)
        fn(std::integral_constant<NormGain, NormGain::OnePlusWeight>());
    else
        fn(std::integral_constant<NormGain, NormGain::Weight>());
}

} // namespace mr::cpu
