#include "core/device/cpu/ops/gemm_kernel.h"

// Two targets are worth their compile time: the minimum, and AVX-512.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#define HWY_DISABLE_PCLMUL_AES
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/device/cpu/ops/gemm_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace mr::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::CappedTag<float, 16>;
using V = hn::Vec<Lanes>;
inline constexpr int kVecLanes = static_cast<int>(hn::MaxLanes(Lanes()));
inline constexpr int kVecsPerPanel = 16 / kVecLanes;
// Accumulators take 24 of 32 registers with AVX-512, 12 of 16 with AVX2.
inline constexpr int kRows = kVecLanes == 16 ? 12 : 6;
inline constexpr int kPanelsAtOnce = kVecLanes == 16 ? 2 : 1;

template <int kCount, int kPanels>
HWY_ATTR HWY_INLINE void loadOrZero(
    V (&acc)[kCount][kPanels * kVecsPerPanel], const float* c, std::int64_t ldc, bool accumulate)
{
    const Lanes d;
#pragma GCC unroll 12
    for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < kPanels * kVecsPerPanel; ++v)
            acc[i][v] =
                accumulate ? hn::LoadU(d, c + i * ldc + std::int64_t{v} * kVecLanes) : hn::Zero(d);
}

// kCount rows by kPanels panels, over all of the depth.
template <int kCount, int kPanels>
HWY_ATTR void tile(const GemmBlock& g, std::int64_t row, std::int64_t panel)
{
    constexpr int kVecs = kPanels * kVecsPerPanel;
    const Lanes d;
    const float* a = g.a + row * g.aRow;
    const float* b = g.panels + panel * g.panelStride;
    float* c = g.c + row * g.ldc + panel * 16;
    V acc[kCount][kVecs];
    loadOrZero<kCount, kPanels>(acc, c, g.ldc, g.accumulate);
    for (std::int64_t k = 0; k < g.depth; ++k) {
        V bv[kVecs];
#pragma GCC unroll 4
        for (int v = 0; v < kVecs; ++v)
            bv[v] = hn::LoadU(d, b + (v / kVecsPerPanel) * g.panelStride + k * 16 +
                                     std::int64_t{v % kVecsPerPanel} * kVecLanes);
        const float* ak = a + k * g.aCol;
#pragma GCC unroll 12
        for (int i = 0; i < kCount; ++i) {
            const V av = hn::Set(d, ak[i * g.aRow]);
#pragma GCC unroll 4
            for (int v = 0; v < kVecs; ++v)
                acc[i][v] = hn::MulAdd(av, bv[v], acc[i][v]);
        }
    }
#pragma GCC unroll 12 // the sums then stay in registers to the end
    for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < kVecs; ++v)
            hn::StoreU(acc[i][v], d, c + i * g.ldc + std::int64_t{v} * kVecLanes);
}

// The rows that are left, at most kCount, in tiles of powers of two and the rest one by one.
template <int kPanels>
HWY_ATTR void rowTail(const GemmBlock& g, std::int64_t row, std::int64_t panel)
{
    for (; row + 4 <= g.rows; row += 4)
        tile<4, kPanels>(g, row, panel);
    if (row + 2 <= g.rows) {
        tile<2, kPanels>(g, row, panel);
        row += 2;
    }
    if (row < g.rows)
        tile<1, kPanels>(g, row, panel);
}

template <int kPanels>
HWY_ATTR void column(const GemmBlock& g, std::int64_t panel)
{
    std::int64_t row = 0;
    for (; row + kRows <= g.rows; row += kRows)
        tile<kRows, kPanels>(g, row, panel);
    rowTail<kPanels>(g, row, panel);
}

HWY_ATTR void runBlock(const GemmBlock& g)
{
    const std::int64_t panels = (g.cols + 15) / 16;
    std::int64_t p = 0;
    for (; p + kPanelsAtOnce <= panels; p += kPanelsAtOnce)
        column<kPanelsAtOnce>(g, p);
    for (; p < panels; ++p)
        column<1>(g, p);
}

} // namespace mr::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mr::cpu {

HWY_EXPORT(runBlock);

void gemmBlock(const GemmBlock& block) noexcept
{
    HWY_DYNAMIC_DISPATCH(runBlock)(block);
}

const char* gemmTargetName() noexcept
{
    return (hwy::SupportedTargets() & HWY_AVX3) != 0 ? "AVX-512" : "AVX2";
}

} // namespace mr::cpu
#endif
