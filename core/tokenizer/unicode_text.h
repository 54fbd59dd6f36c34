// UTF-8 as the tokenizers look at it: one character, and the two classes their files speak of.
//
// Source   White_Space and the word characters of Unicode TR 18 (letters, marks, decimal digits,
//          letter numbers, connectors); categories from utf8proc.
// Threads  Functions without state.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mr {

struct Character {
    std::int32_t code = -1; // -1: not UTF-8, and then one byte
    std::size_t bytes = 0;  // 0: the text has ended
};

Character characterAt(std::string_view text, std::size_t at) noexcept;
// The last character of text[0, end).
Character characterBefore(std::string_view text, std::size_t end) noexcept;
// Bytes of the character and those that a reader takes for a part of it (TR 29, extended clusters).
std::size_t clusterBytes(std::string_view text, std::size_t at) noexcept;
void appendCharacter(std::int32_t code, std::string& out);
bool isUtf8(std::string_view text) noexcept; // as fast as the memory
// Bytes from `at` that are UTF-8.
std::size_t validBytes(std::string_view text, std::size_t at) noexcept;
// At most so many bytes from the front, without a part of a character at their end.
std::string_view firstBytes(std::string_view text, std::size_t most) noexcept;

// Bytes at the end of `text` that begin a character which is not there to its end.
std::size_t unfinishedBytes(std::string_view text) noexcept;

bool isSpace(std::int32_t code) noexcept;
bool isWord(std::int32_t code) noexcept;

} // namespace mr
