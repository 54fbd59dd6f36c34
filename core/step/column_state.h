// Columns of a weight in the host's arrays: taken out of them and put in, in either codec.
//
// Outside of the arrays the state of n columns is plain, (rows, n). The device keeps its columns
// so, because they are no groups of compact state.
//
// Compact state: a group of 32 lies along the rows, so a column is one element of many groups.
// Taking a column decodes it. Putting a column decodes the moments of its groups, puts its values
// in and encodes them anew, which rounds its 31 neighbours once more; their weights and remainders
// stay. A weight never changes when its column moves, so no reader must read it again: a column
// that is put keeps `high`, and one that is taken has the weight as `high` and the rest of the
// decoded master as `low` (decodeMaster24).
//
// Threads  Pure functions over the ranges they are given.
// Errors   none.
// Units    Elements.

#pragma once

#include "core/optim/complement_update.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

// (rows, n) each. resize() within the reserved size allocates nothing.
struct ColumnValues {
    std::vector<std::uint16_t> high;
    std::vector<std::int16_t> low;
    std::vector<float> m;
    std::vector<float> v;

    void reserve(std::size_t count);
    void resize(std::size_t count);
};

// Calls fn(element of the rows, index of the value) row by row.
template <typename F>
void forColumns(
    std::size_t rows, std::size_t cols, std::span<const std::int32_t> columns, const F& fn)
{
    std::size_t index = 0;
    for (std::size_t row = 0; row < rows; ++row)
        for (const std::int32_t column : columns)
            fn(row * cols + static_cast<std::size_t>(column), index++);
}

// Factors by which moments are multiplied on their way.
struct MomentScales {
    float first = 1.0F;
    float second = 1.0F;
};

// All rows. Sums of `from` are not read, nor are those of `to` below.
void takeColumns(const ComplementRows& from, std::span<const std::int32_t> columns,
    const MomentScales& scales, ColumnValues& values);

// In compact state the columns must ascend, so that every group is encoded once; and the rows,
// where they are not the last of their weight, a multiple of rowsOfWholeGroups().
void putColumns(const ColumnValues& values, std::span<const std::int32_t> columns,
    const MomentScales& scales, const ComplementRows& to);

// Moments to zero. Scales stay, so the neighbours do not change.
void clearMoments(const ComplementRows& rows, std::span<const std::int32_t> columns);

} // namespace mr
