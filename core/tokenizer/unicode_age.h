// Characters that the tokenizers package does not know as marks or as composed, because they came
// into Unicode after its tables: normalising them would give other ids than the model was trained
// with. U+32FF, the square of the era Reiwa, is one of them.
//
// Source   The package's normalizers (0.23), asked about every code point.
// Threads  Functions without state.

#pragma once

#include <cstdint>

namespace mr {

// A mark to Unicode, and to the package a character like any other.
bool isLaterMark(std::int32_t code) noexcept;
// Has a decomposition, which the package does not know.
bool isLaterForm(std::int32_t code) noexcept;

} // namespace mr
