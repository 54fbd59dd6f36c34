// Dot: the exact sum of the products of an element, and how far an op may be from it.
//
// Tolerance. A sum of K products in F32, in any order, with or without fma, differs from the
// exact one by at most gamma(K) = K u / (1 - K u) times the sum of |a b| (Higham, "Accuracy and
// Stability of Numerical Algorithms", section 3.1). BF16 pairs (dot-product instructions) round
// twice per pair: 2 K covers them. The store adds one unit roundoff of the output type.
//
// Threads  A value.

#pragma once

#include "core/prove/conformance_case.h"

#include <cmath>
#include <cstdint>

namespace mr::conformance {

// Takes the products one by one.
struct Dot {
    double sum = 0.0;
    double magnitude = 0.0;

    void add(double product)
    {
        sum += product;
        magnitude += std::abs(product);
    }

    double tolerance(std::int64_t depth, DType out) const
    {
        const double k = 2.0 * static_cast<double>(depth) + 4.0;
        return k * kU * magnitude + unitOf(out) * (std::abs(sum) + k * kU * magnitude);
    }
};

} // namespace mr::conformance
