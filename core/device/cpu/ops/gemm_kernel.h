// The small F32 matrix product under attention, and under `linear` in builds without oneDNN.
//
// B lies in panels of kPanel columns: element (k, n) at panels[(n / 16) * panelStride + k * 16 + n
// % 16], columns past the last padded (the packer writes zeros). A is read through two strides, so
// that a transposed A costs nothing.
//
// Order    c[i][j] is one chain of fma over k ascending that starts at 0, or at c[i][j] with
//          `accumulate`: the bits do not depend on how a product is cut, in m, n or k.
// Threads  A pure function. Run-time dispatch: AVX2 or AVX-512; same bits.

#pragma once

#include <cstdint>

namespace mr::cpu {

inline constexpr std::int64_t kPanel = 16;

constexpr std::int64_t paddedToPanel(std::int64_t n) noexcept
{
    return (n + kPanel - 1) / kPanel * kPanel;
}

struct GemmBlock {
    const float* a = nullptr; // element (i, k) at a[i * aRow + k * aCol]
    std::int64_t aRow = 0;
    std::int64_t aCol = 1;
    const float* panels = nullptr;
    std::int64_t panelStride = 0; // floats from one panel to the next, >= 16 * depth
    float* c = nullptr;           // (rows, ldc); whole panels are written, padding too
    std::int64_t ldc = 0;         // >= cols rounded up to kPanel
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t depth = 0;
    bool accumulate = false;
};

void gemmBlock(const GemmBlock& block) noexcept;

// Instruction set of gemmBlock here: "AVX-512" or "AVX2".
const char* gemmTargetName() noexcept;

} // namespace mr::cpu
