// A chunk of rows of the delta rule, backward: its buffers, and the products and sums over them.
//
// Threads  Pure; each thread has buffers of its own.

#pragma once

#include "core/device/cpu/ops/delta_rows.h"
#include "core/device/cpu/ops/pack.h"

#include <initializer_list>

namespace mr::cpu {

// Scratch of one thread, in floats.
struct DeltaChunkBuffers {
    // (kRecurrentRows, keyRow), or panels
    float *query, *key, *gradQuery, *gradKey, *keyTemp, *queryB, *keyB, *keyT;
    // (kRecurrentRows, valueRow), or panels
    float *value, *gradOut, *change, *delta, *errors, *moves, *gradOutB, *movesB, *deltaT;
    // (kRecurrentRows, kRecurrentRows); rows s, columns t
    float *scores, *overlaps, *ratios, *first, *second, *scorePairs, *keyPairs;
    float *state, *panels; // strips; of S or G, either way
    float* stateGradients; // (group, keyDim, valueRow): G
    float *beta, *decay, *start, *queryFactors, *keyFactors, *terms, *ends;

    static std::int64_t floats(const DeltaSizes& s, std::int64_t group) noexcept
    {
        return kRecurrentRows * (8 * s.keyRow + 9 * s.valueRow + 7 * kRecurrentRows + 7) +
               (2 + group) * s.stateFloats();
    }

    DeltaChunkBuffers(const DeltaSizes& s, std::int64_t group, float* at) noexcept
    {
        const auto take = [&at](std::initializer_list<float**> parts, std::int64_t count) {
            for (float** part : parts) {
                *part = at;
                at += count;
            }
        };
        take({&query, &key, &gradQuery, &gradKey, &keyTemp, &queryB, &keyB, &keyT},
            kRecurrentRows * s.keyRow);
        take({&value, &gradOut, &change, &delta, &errors, &moves, &gradOutB, &movesB, &deltaT},
            kRecurrentRows * s.valueRow);
        take({&scores, &overlaps, &ratios, &first, &second, &scorePairs, &keyPairs},
            kRecurrentRows * kRecurrentRows);
        take({&state, &panels}, s.stateFloats());
        take({&stateGradients}, group * s.stateFloats());
        take({&beta, &decay, &start, &queryFactors, &keyFactors, &terms, &ends}, kRecurrentRows);
    }
};

// A matrix as the left side of a product.
struct LeftMatrix {
    const float* at;
    std::int64_t row;
    std::int64_t col;
};

// Panels of a right side, `depth` rows of them.
struct RightPanels {
    const float* at;
    std::int64_t depth;
    std::int64_t rows; // that a panel has room for
};

struct ProductOut {
    float* at;
    std::int64_t ld;
    std::int64_t rows;
    std::int64_t cols;
};

inline void multiply(
    const LeftMatrix& a, const RightPanels& b, const ProductOut& c, bool accumulate)
{
    gemmBlock({a.at, a.row, a.col, b.at, b.rows * kPanel, c.at, c.ld, c.rows, c.cols, b.depth,
        accumulate});
}

// to += from, by rows that are scaled first; and each row's dot product with a row of `with` is
// added to `dots`.
inline void addScaledRows(const DeltaSizes& s, std::int64_t rows, const float* scales, float* from,
    const float* with, float* to, float* dots)
{
    for (std::int64_t t = 0; t < rows; ++t) {
        const std::int64_t at = t * s.keyRow;
        for (std::int64_t i = 0; i < s.keyRow; ++i) {
            from[at + i] *= scales[t];
            to[at + i] += from[at + i];
        }
        dots[t] += sumProducts(from + at, with + at, s.keyDim);
    }
}

// gradX = factor (n' - x factor (x factor . n')) of one normed row, n' = scale grad.
template <typename T>
void storeNormGradient(const T* x, float factor, float scale, float* grad, T* to, std::int64_t n)
{
    for (std::int64_t i = 0; i < n; ++i)
        grad[i] *= scale;
    const float dot = sumProducts(x, grad, n) * factor;
    for (std::int64_t i = 0; i < n; ++i)
        to[i] = fromFloat<T>(factor * std::fma(-(toFloat(x[i]) * factor), dot, grad[i]));
}

} // namespace mr::cpu
