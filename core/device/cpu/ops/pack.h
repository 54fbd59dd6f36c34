// Copies parts of a matrix of A into the F32 layouts of gemm_kernel.h.

#pragma once

#include "core/device/cpu/ops/gemm_kernel.h"
#include "core/device/cpu/ops/number.h"

#include <algorithm>

namespace mr::cpu {

// `rows` rows of `cols` elements, `ld` elements apart, to F32 rows `ldTo` apart; columns up to
// ldTo are zeroed.
template <typename T>
void packRows(const T* from, std::int64_t ld, std::int64_t rows, std::int64_t cols, float* to,
    std::int64_t ldTo) noexcept
{
    for (std::int64_t r = 0; r < rows; ++r) {
        const T* in = from + r * ld;
        float* out = to + r * ldTo;
        for (std::int64_t c = 0; c < cols; ++c)
            out[c] = toFloat(in[c]);
        std::fill(out + cols, out + ldTo, 0.0F);
    }
}

// B (depth, cols) as it lies: row k of `from` is row k of B.
template <typename T>
void packPanels(const T* from, std::int64_t ld, std::int64_t depth, std::int64_t cols,
    float* panels, std::int64_t panelStride) noexcept
{
    for (std::int64_t first = 0; first < cols; first += kPanel, panels += panelStride) {
        const std::int64_t width = std::min(kPanel, cols - first);
        for (std::int64_t k = 0; k < depth; ++k) {
            const T* in = from + k * ld + first;
            float* out = panels + k * kPanel;
            if (width == kPanel) {
                for (std::int64_t c = 0; c < kPanel; ++c)
                    out[c] = toFloat(in[c]);
            } else {
                std::fill(out, out + kPanel, 0.0F);
                for (std::int64_t c = 0; c < width; ++c)
                    out[c] = toFloat(in[c]);
            }
        }
    }
}

// B (depth, cols) from its transpose: row n of `from` is column n of B.
template <typename T>
void packPanelsTransposed(const T* from, std::int64_t ld, std::int64_t depth, std::int64_t cols,
    float* panels, std::int64_t panelStride) noexcept
{
    for (std::int64_t first = 0; first < cols; first += kPanel, panels += panelStride) {
        const std::int64_t width = std::min(kPanel, cols - first);
        if (width < kPanel)
            std::fill(panels, panels + depth * kPanel, 0.0F);
        // 16 x 16 blocks: both sides then stay within the first cache.
        for (std::int64_t k0 = 0; k0 < depth; k0 += 16) {
            const std::int64_t k1 = std::min(depth, k0 + 16);
            for (std::int64_t c = 0; c < width; ++c) {
                const T* in = from + (first + c) * ld;
                for (std::int64_t k = k0; k < k1; ++k)
                    panels[k * kPanel + c] = toFloat(in[k]);
            }
        }
    }
}

} // namespace mr::cpu
