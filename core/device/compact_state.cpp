// Compiled once per instruction set by Highway; the best one the processor has is chosen at run
// time. All give the same bits: a lane follows the order written in compact_state.h, lanes join in
// a maximum only, and a short last group is a whole one padded with zeros.

#include "core/device/compact_state.h"

#include "core/device/compact_padding.h"

// AVX2 is the least (x86-64-v3, so without asking for AES). Below it Highway's MulAdd is no fma.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#define HWY_DISABLE_PCLMUL_AES
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/device/compact_state.cpp"
// Highway chooses the targets by including this file again; its headers go last for that.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cassert>

HWY_BEFORE_NAMESPACE();

namespace mr::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Float = hn::CappedTag<float, 16>;
using Int = hn::RebindToSigned<Float>;
using Word = hn::RebindToUnsigned<Float>;
using Half = hn::Rebind<std::uint16_t, Float>;
using Code = hn::Rebind<std::int8_t, Float>;
using Root = hn::Rebind<std::uint8_t, Float>;
using Vec = hn::Vec<Float>;

constexpr std::size_t kLanes = hn::MaxLanes(Float());
constexpr std::size_t kVecs = kCompactGroup / kLanes;

// A group in F32; root: of v.
struct Group {
    Vec p[kVecs];
    Vec m[kVecs];
    Vec root[kVecs];
};

HWY_INLINE Vec constant(float x)
{
    return hn::Set(Float(), x);
}

HWY_INLINE Vec clamp(Vec x, float lowest, float highest)
{
    const Vec above = hn::IfThenElse(hn::Gt(x, constant(lowest)), x, constant(lowest));
    return hn::IfThenElse(hn::Lt(above, constant(highest)), above, constant(highest));
}

// The largest of a group and `least`; a NaN counts as nothing.
HWY_INLINE float largest(const Vec (&x)[kVecs], float least)
{
    Vec top = constant(least);
    for (const Vec& one : x) {
        const Vec magnitude = hn::Abs(one);
        top = hn::IfThenElse(hn::Gt(magnitude, top), magnitude, top);
    }
    return hn::GetLane(hn::MaxOfLanes(Float(), top));
}

HWY_INLINE Vec loadBf16(const std::uint16_t* from)
{
    return hn::BitCast(Float(), hn::ShiftLeft<16>(hn::PromoteTo(Word(), hn::LoadU(Half(), from))));
}

HWY_INLINE Vec unitOf(Vec weight)
{
    const auto exponent = hn::And(hn::BitCast(Word(), weight), hn::Set(Word(), 0x7F800000U));
    return hn::BitCast(Float(), hn::Max(exponent, hn::Set(Word(), 0x00800000U)));
}

// 1 / unit(w), exact; 0 from 2^127.
HWY_INLINE Vec inverseUnitOf(Vec weight)
{
    const auto unit = hn::BitCast(Word(), unitOf(weight));
    return hn::BitCast(Float(), hn::Sub(hn::Set(Word(), 254U << 23), unit));
}

// BF16, nearest even, as the upper half of each word; a NaN stays one.
HWY_INLINE hn::Vec<Word> roundedWeight(Vec p)
{
    const auto bits = hn::BitCast(Word(), p);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(Word(), 1U));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(Word(), 0x7FFFU)), odd);
    const auto quiet = hn::Or(bits, hn::Set(Word(), 0x00400000U));
    const auto isNan = hn::RebindMask(Word(), hn::IsNaN(p));
    return hn::And(hn::IfThenElse(isNan, quiet, rounded), hn::Set(Word(), 0xFFFF0000U));
}

HWY_INLINE void storeMaster(Vec p, const CompactRange& s, std::size_t at)
{
    const auto upper = roundedWeight(p);
    const Vec weight = hn::BitCast(Float(), upper);
    const Vec steps =
        hn::Mul(hn::Mul(hn::Sub(p, weight), inverseUnitOf(weight)), constant(32512.0F));
    const auto remainder = hn::NearestInt(clamp(steps, -127.0F, 127.0F));
    hn::StoreU(hn::TruncateTo(Half(), hn::ShiftRight<16>(upper)), Half(), s.weight + at);
    hn::StoreU(hn::DemoteTo(Code(), remainder), Code(), s.remainder + at);
}

HWY_INLINE Vec loadMaster(const CompactRange& s, std::size_t at)
{
    const Vec weight = loadBf16(s.weight + at);
    const Vec step = hn::Mul(unitOf(weight), constant(1.0F / 32512.0F));
    const auto remainder = hn::PromoteTo(Int(), hn::LoadU(Code(), s.remainder + at));
    return hn::MulAdd(hn::ConvertTo(Float(), remainder), step, weight);
}

HWY_INLINE Vec loadMean(const CompactRange& s, std::size_t at, Vec scale)
{
    const Vec code = hn::ConvertTo(Float(), hn::PromoteTo(Int(), hn::LoadU(Code(), s.m + at)));
    return hn::Mul(scale, hn::Div(code, hn::Sub(constant(254.0F), hn::Abs(code))));
}

HWY_INLINE Vec loadRoot(const CompactRange& s, std::size_t at, Vec step)
{
    const auto code = hn::PromoteTo(Int(), hn::LoadU(Root(), s.v + at));
    return hn::Mul(hn::ConvertTo(Float(), code), step);
}

HWY_INLINE void decodeGroup(const CompactRange& s, std::size_t at, Group& group)
{
    const Vec mScale = constant(s.mScale[at / kCompactGroup]);
    const Vec step = constant(s.vScale[at / kCompactGroup] / 255.0F);
    for (std::size_t k = 0; k < kVecs; ++k) {
        group.p[k] = loadMaster(s, at + k * kLanes);
        group.m[k] = loadMean(s, at + k * kLanes, mScale);
        group.root[k] = loadRoot(s, at + k * kLanes, step);
    }
}

HWY_INLINE void encodeGroup(const Group& group, const CompactRange& s, std::size_t at)
{
    const float mTop = largest(group.m, 1e-12F);
    const float vTop = largest(group.root, 0.0F);
    s.mScale[at / kCompactGroup] = mTop;
    s.vScale[at / kCompactGroup] = vTop;
    const Vec mScale = constant(mTop);
    const Vec perRoot = constant(255.0F / vTop); // infinity for zeros: their code is not made of it
    for (std::size_t k = 0; k < kVecs; ++k) {
        const std::size_t to = at + k * kLanes;
        storeMaster(group.p[k], s, to);
        const Vec share = hn::Div(group.m[k], hn::Add(mScale, hn::Abs(group.m[k])));
        const Vec mean = clamp(hn::Mul(share, constant(254.0F)), -127.0F, 127.0F);
        hn::StoreU(hn::DemoteTo(Code(), hn::NearestInt(mean)), Code(), s.m + to);
        const Vec root = clamp(hn::Mul(group.root[k], perRoot), 1.0F, 255.0F);
        const auto isSome = hn::Gt(group.root[k], hn::Zero(Float()));
        const auto code = hn::NearestInt(hn::IfThenElseZero(isSome, root));
        hn::StoreU(hn::DemoteTo(Root(), code), Root(), s.v + to);
    }
}

// Inputs of an update besides the state.
struct Step {
    const AdamwFactors& f;
    float clipFactor;
};

template <bool kF32Grad, bool kDecayed>
HWY_INLINE void updateGroup(
    const CompactRange& s, const void* grad, std::size_t at, const Step& step)
{
    const AdamwFactors& f = step.f;
    Group group;
    decodeGroup(s, at, group);
    for (std::size_t k = 0; k < kVecs; ++k) {
        Vec g = hn::Zero(Float());
        if constexpr (kF32Grad)
            g = hn::LoadU(Float(), static_cast<const float*>(grad) + at + k * kLanes);
        else
            g = loadBf16(static_cast<const std::uint16_t*>(grad) + at + k * kLanes);
        g = hn::Mul(g, constant(step.clipFactor));
        Vec p = group.p[k];
        if constexpr (kDecayed)
            p = hn::Mul(p, constant(f.decay));
        const Vec oldV = hn::Mul(group.root[k], group.root[k]);
        const Vec m =
            hn::MulAdd(constant(f.oneMinusBeta1), g, hn::Mul(constant(f.beta1), group.m[k]));
        const Vec v =
            hn::MulAdd(hn::Mul(constant(f.oneMinusBeta2), g), g, hn::Mul(constant(f.beta2), oldV));
        const Vec root = hn::Sqrt(v);
        const Vec d = hn::MulAdd(root, constant(f.inverseSqrtBias2), constant(f.eps));
        group.p[k] = hn::MulAdd(constant(-f.stepSize), hn::Div(m, d), p);
        group.m[k] = m;
        group.root[k] = root;
    }
    encodeGroup(group, s, at);
}

template <bool kF32Grad, bool kDecayed>
void updateRange(const CompactRange& s, const void* grad, const Step& step)
{
    std::size_t at = 0;
    for (; at + kCompactGroup <= s.count; at += kCompactGroup)
        updateGroup<kF32Grad, kDecayed>(s, grad, at, step);
    if (at == s.count)
        return;
    constexpr std::size_t kGradBytes = kF32Grad ? sizeof(float) : sizeof(std::uint16_t);
    alignas(float) std::byte gradients[kCompactGroup * sizeof(float)] = {};
    std::memcpy(gradients, static_cast<const std::byte*>(grad) + at * kGradBytes,
        (s.count - at) * kGradBytes);
    PaddedGroup padded;
    padded.take(s, at);
    updateGroup<kF32Grad, kDecayed>(padded.range(), gradients, 0, step);
    padded.give(s, at);
}

void updateCompact(const CompactRange& s, const void* grad, DType gradType,
    const AdamwFactors& factors, float clipFactor, bool decayed)
{
    const Step step{factors, clipFactor};
    if (gradType == DType::F32) {
        if (decayed)
            updateRange<true, true>(s, grad, step);
        else
            updateRange<true, false>(s, grad, step);
    } else {
        if (decayed)
            updateRange<false, true>(s, grad, step);
        else
            updateRange<false, false>(s, grad, step);
    }
}

HWY_INLINE void encodePlain(
    const float* master, const float* m, const float* v, const CompactRange& to, std::size_t at)
{
    Group group;
    for (std::size_t k = 0; k < kVecs; ++k) {
        group.p[k] = hn::LoadU(Float(), master + k * kLanes);
        group.m[k] = hn::LoadU(Float(), m + k * kLanes);
        group.root[k] = hn::Sqrt(hn::LoadU(Float(), v + k * kLanes));
    }
    encodeGroup(group, to, at);
}

void encodeAll(const float* master, const float* m, const float* v, const CompactRange& to)
{
    std::size_t at = 0;
    for (; at + kCompactGroup <= to.count; at += kCompactGroup)
        encodePlain(master + at, m + at, v + at, to, at);
    if (at == to.count)
        return;
    PlainGroup plain;
    std::copy(master + at, master + to.count, plain.master);
    std::copy(m + at, m + to.count, plain.m);
    std::copy(v + at, v + to.count, plain.v);
    PaddedGroup padded;
    encodePlain(plain.master, plain.m, plain.v, padded.range(), 0);
    padded.give(to, at);
}

HWY_INLINE void decodePlain(
    const CompactRange& from, std::size_t at, float* master, float* m, float* v)
{
    Group group;
    decodeGroup(from, at, group);
    for (std::size_t k = 0; k < kVecs; ++k) {
        hn::StoreU(group.p[k], Float(), master + k * kLanes);
        hn::StoreU(group.m[k], Float(), m + k * kLanes);
        hn::StoreU(hn::Mul(group.root[k], group.root[k]), Float(), v + k * kLanes);
    }
}

void decodeAll(const CompactRange& from, float* master, float* m, float* v)
{
    std::size_t at = 0;
    for (; at + kCompactGroup <= from.count; at += kCompactGroup)
        decodePlain(from, at, master + at, m + at, v + at);
    if (at == from.count)
        return;
    PaddedGroup padded;
    padded.take(from, at);
    PlainGroup plain;
    decodePlain(padded.range(), 0, plain.master, plain.m, plain.v);
    std::copy_n(plain.master, from.count - at, master + at);
    std::copy_n(plain.m, from.count - at, m + at);
    std::copy_n(plain.v, from.count - at, v + at);
}

} // namespace mr::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mr {

HWY_EXPORT(updateCompact);
HWY_EXPORT(encodeAll);
HWY_EXPORT(decodeAll);

void adamwCompactUpdate(const CompactRange& range, const void* grad, DType gradType,
    const AdamwFactors& factors, float clipFactor, bool decayed) noexcept
{
    assert(gradType == DType::F32 || gradType == DType::BF16);
    HWY_DYNAMIC_DISPATCH(updateCompact)(range, grad, gradType, factors, clipFactor, decayed);
}

void encodeCompact(
    const float* master, const float* m, const float* v, const CompactRange& to) noexcept
{
    HWY_DYNAMIC_DISPATCH(encodeAll)(master, m, v, to);
}

void decodeCompact(const CompactRange& from, float* master, float* m, float* v) noexcept
{
    HWY_DYNAMIC_DISPATCH(decodeAll)(from, master, m, v);
}

} // namespace mr
#endif
