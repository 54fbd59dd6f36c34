// Compiled once per instruction set by Highway; the best one the processor has is chosen at run
// time. All give the same bits: every lane follows the scalar tail in its order, and IEEE fma,
// division and square root leave no freedom.

#include "core/device/adamw.h"

// AVX2 is the least (x86-64-v3, so without asking for AES). Below it Highway's MulAdd is no fma.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#define HWY_DISABLE_PCLMUL_AES
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/device/adamw.cpp"
// Highway chooses the targets by including this file again; its headers go last for that.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cassert>
#include <cmath>

HWY_BEFORE_NAMESPACE();

namespace mr::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline float loadGrad(const AdamwRange& range, std::size_t i) noexcept
{
    if (range.gradType == DType::F32)
        return static_cast<const float*>(range.grad)[i];
    const std::uint32_t upper = static_cast<const std::uint16_t*>(range.grad)[i];
    return std::bit_cast<float>(upper << 16);
}

// The written order of operations of adamw.h, for one element.
inline void updateOne(const AdamwRange& range, std::size_t i, const AdamwFactors& f,
    float clipFactor, bool decayed) noexcept
{
    const float g = loadGrad(range, i) * clipFactor;
    float p = joinHalves(range.high[i], range.low[i]);
    p = decayed ? p * f.decay : p;
    p = std::fma(-f.stepSize, adamwRatio(g, range.m[i], range.v[i], f), p);
    range.high[i] = highHalf(p);
    range.low[i] = lowHalf(p);
}

template <class D>
HWY_INLINE hn::Vec<D> loadUpperHalf(D d, const std::uint16_t* from)
{
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<std::uint16_t, D> dh;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, from))));
}

template <class D>
HWY_INLINE hn::Vec<D> loadMaster(D d, const AdamwRange& range, std::size_t i)
{
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const hn::Rebind<std::int16_t, D> dh;
    const auto low = hn::BitCast(du, hn::PromoteTo(di, hn::LoadU(dh, range.low + i)));
    return hn::BitCast(d, hn::Add(hn::BitCast(du, loadUpperHalf(d, range.high + i)), low));
}

template <class D>
HWY_INLINE void storeMaster(D d, hn::Vec<D> p, const AdamwRange& range, std::size_t i)
{
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<std::uint16_t, D> dh;
    const hn::Rebind<std::int16_t, D> dl;
    const auto bits = hn::BitCast(du, p);
    const auto high = hn::ShiftRight<16>(hn::Add(bits, hn::Set(du, 0x8000U)));
    const auto low = hn::Sub(bits, hn::ShiftLeft<16>(high));
    hn::StoreU(hn::TruncateTo(dh, high), dh, range.high + i);
    hn::StoreU(hn::BitCast(dl, hn::TruncateTo(dh, low)), dl, range.low + i);
    (void)d;
}

template <bool kF32Grad, bool kDecayed>
void updateRange(const AdamwRange& range, const AdamwFactors& f, float clipFactor) noexcept
{
    const hn::ScalableTag<float> d;
    const std::size_t lanes = hn::Lanes(d);
    const auto clip = hn::Set(d, clipFactor);
    const auto decay = hn::Set(d, f.decay);
    const auto beta1 = hn::Set(d, f.beta1);
    const auto oneMinusBeta1 = hn::Set(d, f.oneMinusBeta1);
    const auto beta2 = hn::Set(d, f.beta2);
    const auto oneMinusBeta2 = hn::Set(d, f.oneMinusBeta2);
    const auto negativeStep = hn::Set(d, -f.stepSize);
    const auto inverseSqrtBias2 = hn::Set(d, f.inverseSqrtBias2);
    const auto eps = hn::Set(d, f.eps);
    std::size_t i = 0;
    for (; i + lanes <= range.count; i += lanes) {
        auto g = hn::Zero(d);
        if constexpr (kF32Grad)
            g = hn::LoadU(d, static_cast<const float*>(range.grad) + i);
        else
            g = loadUpperHalf(d, static_cast<const std::uint16_t*>(range.grad) + i);
        g = hn::Mul(g, clip);
        auto p = loadMaster(d, range, i);
        if constexpr (kDecayed)
            p = hn::Mul(p, decay);
        const auto m = hn::MulAdd(oneMinusBeta1, g, hn::Mul(beta1, hn::LoadU(d, range.m + i)));
        const auto v =
            hn::MulAdd(hn::Mul(oneMinusBeta2, g), g, hn::Mul(beta2, hn::LoadU(d, range.v + i)));
        const auto denominator = hn::MulAdd(hn::Sqrt(v), inverseSqrtBias2, eps);
        p = hn::MulAdd(negativeStep, hn::Div(m, denominator), p);
        hn::StoreU(m, d, range.m + i);
        hn::StoreU(v, d, range.v + i);
        storeMaster(d, p, range, i);
    }
    for (; i < range.count; ++i)
        updateOne(range, i, f, clipFactor, kDecayed);
}

void update(const AdamwRange& range, const AdamwFactors& factors, float clipFactor, bool decayed)
{
    if (range.gradType == DType::F32) {
        if (decayed)
            updateRange<true, true>(range, factors, clipFactor);
        else
            updateRange<true, false>(range, factors, clipFactor);
    } else {
        if (decayed)
            updateRange<false, true>(range, factors, clipFactor);
        else
            updateRange<false, false>(range, factors, clipFactor);
    }
}

} // namespace mr::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mr {

HWY_EXPORT(update);

AdamwFactors adamwFactors(
    const AdamwSettings& settings, double learningRate, std::int64_t count, int stride)
{
    const auto power = static_cast<double>(count);
    const double beta1 = stride == 1 ? settings.beta1 : std::pow(settings.beta1, stride);
    const double beta2 = stride == 1 ? settings.beta2 : std::pow(settings.beta2, stride);
    AdamwFactors f;
    f.decay = static_cast<float>(1.0 - learningRate * settings.weightDecay);
    f.beta1 = static_cast<float>(beta1);
    f.oneMinusBeta1 = static_cast<float>(1.0 - beta1);
    f.beta2 = static_cast<float>(beta2);
    f.oneMinusBeta2 = static_cast<float>(1.0 - beta2);
    f.stepSize = static_cast<float>(learningRate / (1.0 - std::pow(settings.beta1, power)));
    f.inverseSqrtBias2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(settings.beta2, power)));
    f.eps = static_cast<float>(settings.eps);
    return f;
}

void adamwUpdate(
    const AdamwRange& range, const AdamwFactors& factors, float clipFactor, bool decayed) noexcept
{
    assert(range.gradType == DType::F32 || range.gradType == DType::BF16);
    HWY_DYNAMIC_DISPATCH(update)(range, factors, clipFactor, decayed);
}

} // namespace mr
#endif
