// The shapes that ops on rows are tried with, and their lines in the table.

#pragma once

#include "core/prove/conformance_case.h"

#include <string>
#include <utility>

namespace mr::conformance {

struct RowShape {
    std::int64_t rows, cols;
};

inline constexpr RowShape kRowShapes[] = {{1, 1}, {1, 64}, {7, 33}, {64, 16}, {130, 257}, {0, 24},
    {2, 4096}, {1, 17'000}}; // the last two: rows of models, of several warps

inline std::string describe(const char* op, DType type, const RowShape& s, const char* more = "")
{
    return std::string(op) + " " + typeName(type) + " (" + std::to_string(s.rows) + ", " +
           std::to_string(s.cols) + ")" + more;
}

template <typename F>
void push(Table& table, const char* op, DType type, const RowShape& s, const char* more, F run)
{
    table.push_back({op, describe(op, type, s, more), std::move(run)});
}

} // namespace mr::conformance
