// FP8 numbers in double precision, for comparison with those of the ops: written from the formats'
// definition, not from core/device/fp8.h.
//
// Threads  Pure functions.
// Source   Micikevicius et al., "FP8 Formats for Deep Learning", arXiv 2209.05433, table 1.

#pragma once

#include "core/device/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace mr::conformance {

struct Fp8Format {
    int mantissaBits = 0;
    int bias = 0;
    double largest = 0.0;
};

constexpr Fp8Format fp8Format(DType type) noexcept
{
    return type == DType::E4M3 ? Fp8Format{3, 7, 448.0} : Fp8Format{2, 15, 57344.0};
}

// The finite number of a code.
inline double fp8Value(DType type, std::uint8_t code)
{
    const Fp8Format f = fp8Format(type);
    const int ones = 1 << f.mantissaBits;
    const int exponent = (code & 0x7F) / ones;
    const int mantissa = code % ones + (exponent == 0 ? 0 : ones);
    const double size = std::ldexp(mantissa, std::max(exponent, 1) - f.bias - f.mantissaBits);
    return (code & 0x80) == 0 ? size : -size;
}

// Nearest even; beyond the largest number, the largest.
inline double roundToFp8(DType type, double x)
{
    if (x == 0.0) // has no exponent
        return x;
    const Fp8Format f = fp8Format(type);
    const int step = std::max(std::ilogb(x), 1 - f.bias) - f.mantissaBits;
    const double size = std::ldexp(std::nearbyint(std::ldexp(std::abs(x), -step)), step);
    return std::copysign(std::min(size, f.largest), x);
}

// The code of a number that has one.
inline std::uint8_t fp8Code(DType type, double value)
{
    for (int code = 0; code < 256; ++code)
        if (fp8Value(type, static_cast<std::uint8_t>(code)) == value)
            return static_cast<std::uint8_t>(code);
    return 0x7F; // no number
}

} // namespace mr::conformance
