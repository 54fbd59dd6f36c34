// Arguments of ops on columns of rows: copies of what lies beside other columns. See ops.h.
//
// Threads  As in ops.h.
// Units    Elements.

#pragma once

#include "core/device/tensor.h"

#include <cstdint>

namespace mr {

// to[t, toColumn + c] = from[t, fromColumn + c] for c below `columns`; with `accumulate` their sum,
// formed in F32 and rounded once. Other columns of `to` stay.
struct CopyColumnsArgs {
    TensorView from; // (T, n), A or F32
    TensorView to;   // (T, m), A or F32
    std::int64_t fromColumn = 0;
    std::int64_t toColumn = 0;
    std::int64_t columns = 0;
    bool accumulate = false;
};

} // namespace mr
