// Products of matrices on the host, element by element, as libraries of a card document theirs.
//
// Order    F32 sums in ascending order of k, with one rounding each; times the scale; plus the
//          bias; plus the old value where it accumulates; rounded to the type of the result.
// Threads  Any.

#pragma once

#include "core/device/tensor.h"

#include <cstddef>
#include <cstdint>

namespace mr::simt {

// Element (r, c) is the one at r * rowStep + c * colStep.
struct HostMatrix {
    std::byte* data = nullptr;
    DType dtype = DType::F32; // or BF16, E4M3, E5M2
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t rowStep = 0;
    std::int64_t colStep = 0;
};

HostMatrix transposed(const HostMatrix& matrix) noexcept;

struct HostProduct {
    HostMatrix a;    // (m, k)
    HostMatrix b;    // (k, n)
    HostMatrix out;  // (m, n), F32 or BF16
    HostMatrix bias; // (1, n); data null: none
    float scale = 1.0F;
    bool accumulates = false;
};

void multiply(const HostProduct& product);

} // namespace mr::simt
