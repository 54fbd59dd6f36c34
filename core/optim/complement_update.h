// The host's half of a policy that splits gradients by columns: sums over a window of steps, their
// norm, and AdamW on the columns the host owns.
//
// Master and moments lie in model layout, (rows, cols), for all columns; sums are packed, (rows,
// columns of the host). The vectors of AdamW run over whole rows, also over columns that the device
// owns: host state there means nothing, and it is written anew before the host owns such a column.
// In compact state the moments there must be zero: a group's scales are those of all its elements,
// and zeros stay zeros and raise none.
//
// Threads  Pure functions over the ranges they are given; FTZ and DAZ must be off.
// Errors   none.

#pragma once

#include "core/device/compact_state.h"
#include "core/device/ops.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

namespace mr {

// sum = gradient if it is the first, else sum + gradient; one rounding each.
void addGradient(
    float* sum, const void* gradient, DType gradientType, std::size_t count, bool isFirst) noexcept;

// The sums of NormBlocksArgs: one for every 1,024 elements.
void squareBlocks(const void* x, DType type, std::size_t count, float* blockSums) noexcept;
// The sum of NormJoinArgs before the root.
double joinBlocks(std::span<const float> blockSums) noexcept;

// The least number of rows that ends where a group of compact state does.
constexpr std::size_t rowsOfWholeGroups(std::size_t cols) noexcept
{
    return kCompactGroup / std::gcd(cols, kCompactGroup);
}

// Rows of one weight.
struct ComplementRows {
    std::uint16_t* high = nullptr; // (rows, cols), and so the next three; BF16 weights
    std::int16_t* low = nullptr;
    float* m = nullptr;
    float* v = nullptr;
    // All of the rows; the first begins a group. `high` is its weight then, and the other three are
    // not read. Weight null: the state is the four above.
    CompactRange compact = {};
    // (rows, columns), F32 or the gradient type. The new weights are written over it, densely from
    // its beginning, as BF16 or F32, which are not larger.
    std::byte* sums = nullptr;
    DType sumType = DType::F32;
    DType weightType = DType::BF16;
    std::span<const std::int32_t> columns; // the host's, ascending
    std::size_t rows = 0;
    std::size_t cols = 0;
    bool decayed = true;
};

// `count` of them, from row `first`: of compact state a multiple of rowsOfWholeGroups().
ComplementRows rowsFrom(const ComplementRows& all, std::size_t first, std::size_t count) noexcept;

// One AdamW update with the gradient `scale` times the sum; the order of operations is that of
// adamw.h with `scale` for the clip factor. `scratch` has room for scratchCount(rows).
std::size_t scratchCount(const ComplementRows& rows) noexcept;
void updateComplement(const ComplementRows& rows, const AdamwFactors& factors, float scale,
    std::span<float> scratch) noexcept;

// Writes the weights as they are over the sums, for a window without a gradient.
void packWeights(const ComplementRows& rows) noexcept;
// Reads back `high`, and for F32 weights `low` too, from the weights written over the sums.
void unpackWeights(const ComplementRows& rows) noexcept;

} // namespace mr
