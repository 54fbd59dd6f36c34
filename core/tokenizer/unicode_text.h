// Characters as the tokenizers look at them: clusters, and the two classes their files speak of.
//
// Source   White_Space and the word characters of Unicode TR 18 (letters, marks, decimal digits,
//          letter numbers, connectors); categories from utf8proc.
// Threads  Functions without state.

#pragma once

#include "core/base/utf8.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mr {

// Bytes of the character and those that a reader takes for a part of it (TR 29, extended clusters).
std::size_t clusterBytes(std::string_view text, std::size_t at) noexcept;
bool isUtf8(std::string_view text) noexcept; // as fast as the memory
bool isSpace(std::int32_t code) noexcept;
bool isWord(std::int32_t code) noexcept;

} // namespace mr
