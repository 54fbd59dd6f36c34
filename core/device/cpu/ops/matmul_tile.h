// Shared by both kinds of matmul tile: the piece of the grid, and the way out of the F32 buffer.

#pragma once

#include "core/device/cpu/ops/matmul.h"
#include "core/device/cpu/ops/number.h"

#include <algorithm>
#include <cstddef>

namespace mr::cpu {

struct Tile {
    std::int64_t row = 0;
    std::int64_t col = 0;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
};

inline Tile tileAt(const Product& p, const TileGrid& grid, std::int64_t index) noexcept
{
    // Down first: neighbours share columns of B, the weight.
    Tile t;
    t.row = index % grid.down * grid.tileRows;
    t.col = index / grid.down * grid.tileCols;
    t.rows = std::min(grid.tileRows, p.rows - t.row);
    t.cols = std::min(grid.tileCols, p.cols - t.col);
    return t;
}

template <typename T>
void storeTileAs(const Product& p, const Tile& t, const float* buffer, std::int64_t ld) noexcept
{
    const float scale = p.scaleA ? *p.scaleA * *p.scaleB : p.factor;
    for (std::int64_t r = 0; r < t.rows; ++r) {
        const float* in = buffer + r * ld;
        T* out = reinterpret_cast<T*>(p.c) + (t.row + r) * p.rowOfC() + t.col;
        if (p.accumulate) {
            for (std::int64_t c = 0; c < t.cols; ++c)
                out[c] = fromFloat<T>(toFloat(out[c]) + scale * in[c]);
        } else if (p.bias) {
            withType(p.type, [&](auto* tag) {
                const auto* bias =
                    reinterpret_cast<const std::remove_pointer_t<decltype(tag)>*>(p.bias);
                for (std::int64_t c = 0; c < t.cols; ++c)
                    out[c] = fromFloat<T>(scale * in[c] + toFloat(bias[t.col + c]));
            });
        } else {
            for (std::int64_t c = 0; c < t.cols; ++c)
                out[c] = fromFloat<T>(scale * in[c]);
        }
    }
}

inline void storeTile(
    const Product& p, const Tile& t, const float* buffer, std::int64_t ld) noexcept
{
    if (p.cType == DType::BF16)
        storeTileAs<Bf16>(p, t, buffer, ld);
    else
        storeTileAs<float>(p, t, buffer, ld);
}

} // namespace mr::cpu
