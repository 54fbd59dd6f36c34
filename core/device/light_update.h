// Optimizers that keep one number for each row and column of a weight, or none, and update it where
// its gradient is: right behind the backward that made it.
//
// A weight is (rows, cols); a vector is one row. g is its gradient times the clip factor, u its
// update, all in F32 with IEEE rounding, fma only where written:
//     r_i = past * r_i + present * (mean over j of g_ij^2 + 1e-30)      c_j likewise over i
//     u   = g / (sqrt(r_i / s) * sqrt(c_j)), s = mean of r              factored, adalomo
//     u   = g                                                           sgd-normalised
//     p   = decayed ? p * decay : p;   p = fma(-size, u, p)
//     size = rate / max(1, RMS(u) / limit)                              factored
//            rate * max(1e-3, RMS(p)) / max(1, RMS(u) / limit)          adalomo
//            rate / RMS(u), of zeros 0                                  sgd-normalised
// apollo-mini projects a matrix to its longer side by signs s, and steps by the size that AdamW's
// step of the projection would have:
//     R_i = sum over j of g_ij s_j, or R_j = sum over i of s_i g_ij     u = g
//     M = fma(.1, R, .9 M);   V = fma(.001 R, R, .999 V)
//     f = |M / (sqrt(V) + 1e-6)| / (|R| + 1e-8);   n = f |g|
//     not in the first step: q = max(n / (n before + 1e-8), 1.01) / 1.01;   f = f / q;   n = n / q
//     size = rate * f, with sqrt(smaller side), bias correction and decay in the rate
// grass steps some rows of a matrix by AdamW (core/device/adamw.h) and leaves the others alone: the
// rows with the largest squares, which are chosen anew after some updates with moments of 0.
// For one row r / s is 1, so that a vector needs no formula of its own.
// Source: Shazeer and Stern, "Adafactor" (arXiv 1804.04235), algorithms 4 and 5 without momentum;
// Lv et al., "AdaLomo" (arXiv 2310.10195). g / sqrt(r c / s) is not taken: r c of a row without a
// gradient underflows, and 0 / 0 follows. Zhu et al., "APOLLO" (arXiv 2412.05270), section 4, with
// signs in place of normal numbers: they are exact everywhere. Muhamed et al., "Grass" (arXiv
// 2406.17660), with the rows of largest norm.
//
// Order    Sums over a row: blocks of 256 columns; in a block 8 lanes (column modulo 8), each in
//          ascending order by fma; lanes ((0+4)+(2+6)) + ((1+5)+(3+7)); then the blocks pairwise in
//          a balanced tree over their index, in which a node without a neighbour goes up as it is.
//          Sums over a column: likewise, with blocks of 64 rows. A sum of rows' sums: as a row.
//          So tiles and threads change no bit.
// Scalars  Every op reads StepScalars when it runs; finite == 0 changes neither weight nor state.
//
// Threads  Values.
// Units    Counts are elements.

#pragma once

#include "core/device/adamw_factors.h"
#include "core/device/tensor.h"

#include <cstdint>

namespace mr {

inline constexpr std::int64_t kSumLanes = 8;
inline constexpr std::int64_t kColumnsOfBlock = 256;
inline constexpr std::int64_t kRowsOfBlock = 64;
// Rows of one node of the tree over a column: those whose sums are stored on the way.
inline constexpr std::int64_t kRowsOfPart = 16 * kRowsOfBlock;

constexpr std::int64_t rowParts(std::int64_t rows) noexcept
{
    return (rows + kRowsOfPart - 1) / kRowsOfPart;
}

// sums[i] = sum over j of u[i, j]^2, with u = x * clipFactor / (rowRoots[i] * columnRoots[j]).
struct RowSquaresArgs {
    TensorView x;           // (rows, cols), F32 or BF16
    TensorView scalars;     // (16), U8: StepScalars; data null: the clip factor is 1
    TensorView rowRoots;    // (rows), F32; data null: 1, of both
    TensorView columnRoots; // (cols), F32
    TensorView sums;        // (rows), F32
};

// sums[j] = sum over i of (x[i, j] * clipFactor)^2
struct ColumnSquaresArgs {
    TensorView x;       // (rows, cols), F32
    TensorView scalars; // (16), U8: StepScalars
    TensorView parts;   // (rowParts(rows), cols), F32: scratch
    TensorView sums;    // (cols), F32
};

// Takes a step's sums of squares into the averages, and makes the roots that divide its gradient,
// which are written over the sums.
struct AverageSquaresArgs {
    TensorView rowSums;    // (rows), F32: sums over columns; becomes sqrt(r / s)
    TensorView columnSums; // (cols), F32: sums over rows; becomes sqrt(c)
    TensorView rows;       // (rows), F32: r
    TensorView columns;    // (cols), F32: c
    TensorView scalars;    // (16), U8: StepScalars
    float past = 0.0F;     // weight of the averages as they are
    float present = 1.0F;  // 1 - past
};

enum class StepRule : std::uint8_t { Limited, Relative, Normalised };

// size[0] = the step of one weight, by its rule.
struct StepSizeArgs {
    TensorView updateSums;  // (rows), F32: row sums of u^2
    TensorView weightSums;  // (rows), F32: row sums of p^2; Relative only
    TensorView size;        // (1), F32
    std::int64_t count = 0; // rows * cols
    StepRule rule{};
    float rate = 0.0F;
    float limit = 1.0F; // of RMS(u)
};

// Signs of a projection. Element e is -1 where bit e % 32 of word e / 32 % 4 of
// Philox(key, e / 128, counter) is set, else 1.
struct ProjectionSignsArgs {
    TensorView signs; // (n), F32
    std::uint64_t key = 0;
    std::uint64_t counter = 0;
};

// sums[i] = sum over j of signs[j] x[i, j] clipFactor, or, over rows, sums[j] = sum over i of
// signs[i] x[i, j] clipFactor
struct ProjectGradientArgs {
    TensorView x;       // (rows, cols), F32
    TensorView signs;   // (cols), or (rows) over rows, F32
    TensorView scalars; // (16), U8: StepScalars
    TensorView parts;   // over rows: (rowParts(rows), cols), F32: scratch; else data null
    TensorView sums;    // (rows), or (cols) over rows, F32
    bool overRows = false;
};

// Takes a projection into its moments, and gives the step of the weight.
struct ProjectedStepArgs {
    TensorView projected;  // (n), F32: R
    TensorView squareSums; // (rows), F32: row sums of g^2
    TensorView first;      // (n), F32: M
    TensorView second;     // (n), F32: V
    TensorView norm;       // (1), F32: n of the step before; becomes that of this one
    TensorView size;       // (1), F32
    TensorView scalars;    // (16), U8: StepScalars
    float rate = 0.0F;
    bool isFirst = false;
};

// numbers = the rows with the largest squares, ascending; of equal ones the first. Squares are at
// least 0, so their bits have their order; any bits choose rows that exist.
struct SelectRowsArgs {
    TensorView squares; // (rows), F32: row sums of g^2
    TensorView ranked;  // (n), F32: scratch
    TensorView numbers; // (n), F32: n of the rows
    TensorView scalars; // (16), U8: StepScalars
};
inline constexpr std::int64_t kMostNumberedRows = std::int64_t{1} << 24; // each is a F32

// How the master of a weight is kept; the type of its low plane says it.
enum class MasterPlanes : std::uint8_t {
    Halves,   // I16: 4 bytes, lossless (core/device/adamw.h)
    Bits24,   // I8: 3 bytes (core/device/master24.h)
    Random16, // none: a BF16 rounded at random, which is the value's bits plus 16 random ones, cut
};

inline MasterPlanes planesOf(const TensorView& low) noexcept
{
    if (!low.data)
        return MasterPlanes::Random16;
    return low.dtype == DType::I16 ? MasterPlanes::Halves : MasterPlanes::Bits24;
}

// One update of elements [first, first + n) of a weight.
struct LightUpdateArgs {
    TensorView high;        // (n), U16: BF16
    TensorView low;         // (n), I16 or I8; data null: none (MasterPlanes)
    TensorView grad;        // (n), F32
    TensorView rowRoots;    // (rows), F32; data null: 1, of both
    TensorView columnRoots; // (cols), F32
    TensorView size;        // (1), F32
    TensorView scalars;     // (16), U8: StepScalars
    std::int64_t first = 0;
    std::int64_t cols = 1;
    float decay = 1.0F;  // 1 - rate * weight decay
    bool decayed = true; // false: norms, biases
    // Random16: the bits of element e of the weight are 16 of Philox(key, e / 8, counter): of word
    // e % 8 / 2, the lower ones for an even e.
    std::uint64_t key = 0;
    std::uint64_t counter = 0;
};

// AdamW of the chosen rows among elements [first, first + n) of a weight. Other rows keep their
// bits.
struct RowAdamwArgs {
    TensorView high;    // (n), U16: BF16
    TensorView low;     // (n), I16 or I8; data null: none (MasterPlanes)
    TensorView grad;    // (n), F32
    TensorView numbers; // (r), F32: rows, ascending
    TensorView m;       // (r, cols), F32
    TensorView v;       // (r, cols), F32
    TensorView scalars; // (16), U8: StepScalars
    std::int64_t first = 0;
    std::int64_t cols = 1;
    AdamwFactors factors;
    bool decayed = true;
    bool isFirst = false; // since the choice: moments are 0, whatever the memory holds
    // Random16: as in LightUpdateArgs.
    std::uint64_t key = 0;
    std::uint64_t counter = 0;
};

} // namespace mr
