#include "core/device/cpu/ops/delta_kernel.h"

// Two targets are worth their compile time: the minimum, and AVX-512.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#define HWY_DISABLE_PCLMUL_AES
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/device/cpu/ops/delta_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace mr::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using DeltaLanes = hn::CappedTag<float, 16>;
using DeltaVec = hn::Vec<DeltaLanes>;
inline constexpr int kDeltaLanes = static_cast<int>(hn::MaxLanes(DeltaLanes()));
inline constexpr int kDeltaVecs = static_cast<int>(kDeltaStrip) / kDeltaLanes;

// reads = S^T key
HWY_ATTR HWY_INLINE void readState(const DeltaRows& r, DeltaVec (&reads)[kDeltaVecs])
{
    const DeltaLanes d;
#pragma GCC unroll 4
    for (int v = 0; v < kDeltaVecs; ++v)
        reads[v] = hn::Zero(d);
    for (std::int64_t i = 0; i < r.keyDim; ++i) {
        const DeltaVec key = hn::Set(d, r.key[i]);
#pragma GCC unroll 4
        for (int v = 0; v < kDeltaVecs; ++v)
            reads[v] = hn::MulAdd(
                key, hn::LoadU(d, r.state + i * kDeltaStrip + v * kDeltaLanes), reads[v]);
    }
}

// One row: `reads` is S^T of its key, and becomes that of the next row's.
template <bool kOut>
HWY_ATTR HWY_INLINE void deltaRow(
    const DeltaRows& r, std::int64_t row, DeltaVec (&reads)[kDeltaVecs])
{
    const DeltaLanes d;
    const float* key = r.key + row * r.keyStride;
    const float* next = r.key + std::min(row + 1, r.rows - 1) * r.keyStride;
    const float* query = kOut ? r.query + row * r.keyStride : nullptr;
    const DeltaVec decay = hn::Set(d, r.decay[row]);
    const DeltaVec beta = hn::Set(d, r.beta[row]);
    DeltaVec change[kDeltaVecs];
    DeltaVec out[kDeltaVecs];
#pragma GCC unroll 4
    for (int v = 0; v < kDeltaVecs; ++v) {
        const std::int64_t at = row * r.valueStride + v * kDeltaLanes;
        change[v] = hn::NegMulAdd(decay, reads[v], hn::LoadU(d, r.value + at));
        if (r.change)
            hn::StoreU(change[v], d, r.change + at);
        change[v] = hn::Mul(beta, change[v]);
        out[v] = hn::Zero(d);
        reads[v] = hn::Zero(d);
    }
    for (std::int64_t i = 0; i < r.keyDim; ++i) {
        const DeltaVec k = hn::Set(d, key[i]);
        const DeltaVec after = hn::Set(d, next[i]);
        const DeltaVec q = kOut ? hn::Set(d, query[i]) : hn::Zero(d);
#pragma GCC unroll 4
        for (int v = 0; v < kDeltaVecs; ++v) {
            float* at = r.state + i * kDeltaStrip + v * kDeltaLanes;
            const DeltaVec s = hn::MulAdd(k, change[v], hn::Mul(decay, hn::LoadU(d, at)));
            hn::StoreU(s, d, at);
            if (kOut)
                out[v] = hn::MulAdd(q, s, out[v]);
            reads[v] = hn::MulAdd(after, s, reads[v]);
        }
    }
    if (kOut)
#pragma GCC unroll 4
        for (int v = 0; v < kDeltaVecs; ++v)
            hn::StoreU(out[v], d, r.out + row * r.valueStride + v * kDeltaLanes);
}

HWY_ATTR void runRows(const DeltaRows& r)
{
    DeltaVec reads[kDeltaVecs];
    readState(r, reads);
    for (std::int64_t row = 0; row < r.rows; ++row) {
        if (r.query)
            deltaRow<true>(r, row, reads);
        else
            deltaRow<false>(r, row, reads);
    }
}

} // namespace mr::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mr::cpu {

HWY_EXPORT(runRows);

void deltaRows(const DeltaRows& rows) noexcept
{
    if (rows.rows > 0)
        HWY_DYNAMIC_DISPATCH(runRows)(rows);
}

} // namespace mr::cpu
#endif
