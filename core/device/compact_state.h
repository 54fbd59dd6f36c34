// The compact optimizer state: 5.25 bytes a parameter where the plain one takes 12, and AdamW on it
// with the same bits on every route.
//
// A parameter is its weight as BF16 (U16, the bytes uploaded), an I8 remainder, m as I8 and the
// root of v as U8; each 32 parameters share an F32 scale of m and one of v. Groups begin at
// multiples of 32 of the range; the last may be short.
//
// One group, all in F32 and IEEE rounding; fma only where written; round() goes to the nearest
// integer, ties to even; clamp(x, a, b) is x > a ? x : a, then < b, so a NaN becomes a. unit(w) is
// 2 to the exponent of w, at least 2^-126: half a unit in the last place of a BF16 is unit / 256.
//   decode
//     p = fma(remainder, unit(weight) * (1 / 32512), weight)             32512 = 127 * 256
//     m = mScale * (mCode / (254 - |mCode|))
//     v = r * r with r = vCode * (vScale / 255)
//   update: the six lines of core/device/adamw.h
//   encode
//     weight    = p as BF16, nearest even
//     remainder = round(clamp((p - weight) * (1 / unit(weight)) * 32512, -127, 127))
//     mScale    = max(1e-12, the largest |m|)
//     mCode     = round(clamp(m / (mScale + |m|) * 254, -127, 127))
//     vScale    = the largest r, with r = sqrt(v)
//     vCode     = r > 0 ? round(clamp(r * (255 / vScale), 1, 255)) : 0
// Source: FlashOptim (arXiv 2602.23349). Its companding y = 2x / (1 + |x|) of x = m / mScale, times
// 127, is the line of mCode; its inverse x = y / (2 - |y|) is that of m. Two things differ, because
// the published code blows up without them (a simulation found updates of 236 lr): scales are F32
// instead of F16, and a v above 0 never gets code 0. With code 0 the update would be m / eps.
//
// 1 / unit is exact, so no division is needed; from 2^127, where it would be a denormal, it is 0
// and nothing is kept below the weight. Values that are not finite are not kept: such a step is to
// be skipped (StepScalars::finite).
//
// Threads  Pure functions over the ranges they are given; FTZ and DAZ must be off.
// Errors   none; x86-64-v3 (AVX2, FMA) is required and checked at program start.
// Units    Counts are parameters.

#pragma once

#include "core/device/adamw.h"

namespace mr {

inline constexpr std::size_t kCompactGroup = 32; // parameters with one pair of scales
inline constexpr double kCompactBytesPerElement = 5.25;

constexpr std::size_t compactGroups(std::size_t count) noexcept
{
    return (count + kCompactGroup - 1) / kCompactGroup;
}

// Bytes of all six planes: kCompactBytesPerElement each for whole groups.
constexpr std::size_t compactStateBytes(std::size_t count) noexcept
{
    return count * 5 + compactGroups(count) * 2 * sizeof(float);
}
static_assert(static_cast<double>(compactStateBytes(kCompactGroup)) ==
              kCompactBytesPerElement * static_cast<double>(kCompactGroup));

// Planes of one range, which begins where a group does. Zero bytes are a state of zeros.
struct CompactRange {
    std::uint16_t* weight = nullptr;  // (count), BF16
    std::int8_t* remainder = nullptr; // (count), in 127ths of half a unit in the last place
    std::int8_t* m = nullptr;         // (count), companded
    std::uint8_t* v = nullptr;        // (count), the root
    float* mScale = nullptr;          // (compactGroups(count))
    float* vScale = nullptr;          // (compactGroups(count))
    std::size_t count = 0;
};

// Elements [first, first + count) of a range; `first` is a multiple of kCompactGroup.
inline CompactRange partOf(const CompactRange& all, std::size_t first, std::size_t count) noexcept
{
    const std::size_t group = first / kCompactGroup;
    return {all.weight + first, all.remainder + first, all.m + first, all.v + first,
        all.mScale + group, all.vScale + group, count};
}

// One update of a range. One thread; vectorised with run-time dispatch, the same bits with every
// instruction set and for every cut at a multiple of kCompactGroup.
// `grad`: (count), BF16 (as uint16) or F32, by `gradType`.
void adamwCompactUpdate(const CompactRange& range, const void* grad, DType gradType,
    const AdamwFactors& factors, float clipFactor, bool decayed) noexcept;

// The state of these F32 master weights and moments, (to.count) each; v not negative.
void encodeCompact(
    const float* master, const float* m, const float* v, const CompactRange& to) noexcept;

// Decodes master weights and moments, within the codec's error; (from.count) each.
void decodeCompact(const CompactRange& from, float* master, float* m, float* v) noexcept;

} // namespace mr
