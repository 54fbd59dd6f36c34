// The white space that separates things in data files.
//
// Threads  A constant.

#pragma once

#include <string_view>

namespace mr {

inline constexpr std::string_view kWhite = " \t\r\n";

} // namespace mr
