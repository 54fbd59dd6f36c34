// The gated delta rule over rows of one value head, kDeltaStrip columns of its state at a time.
//
//     u = S^T k,   c = v - decay u,   d = beta c,   S = fma(k, d, decay S),   out = S^T q
//
// Columns of S do not meet, so a strip of them stays in the first cache for all rows.
//
// Order    Sums over keyDim ascending, by fma: the bits do not depend on how rows are cut into
//          calls, nor on the instruction set (run-time dispatch: AVX2 or AVX-512).
// Threads  A pure function.

#pragma once

#include <cstdint>

namespace mr::cpu {

inline constexpr std::int64_t kDeltaStrip = 32;

constexpr std::int64_t paddedToStrip(std::int64_t n) noexcept
{
    return (n + kDeltaStrip - 1) / kDeltaStrip * kDeltaStrip;
}

struct DeltaRows {
    const float* query = nullptr; // (rows, keyStride); null: no outputs
    const float* key = nullptr;   // (rows, keyStride)
    const float* decay = nullptr; // (rows): exp(g)
    const float* beta = nullptr;  // (rows)
    const float* value = nullptr; // (rows, valueStride), kDeltaStrip columns
    float* out = nullptr;         // as value; with query
    float* change = nullptr;      // as value: c; null: not wanted
    float* state = nullptr;       // (keyDim, kDeltaStrip)
    std::int64_t rows = 0;
    std::int64_t keyDim = 0;
    std::int64_t keyStride = 0;
    std::int64_t valueStride = 0;
};

void deltaRows(const DeltaRows& rows) noexcept;

} // namespace mr::cpu
