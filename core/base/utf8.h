// UTF-8, one character at a time.
//
// A longer form than needed, a surrogate and a code beyond Unicode are not UTF-8.
//
// Threads  Pure functions.
// Source   RFC 3629.

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

// Bytes of the character that begins with this byte; 0: none does.
std::size_t characterBytes(unsigned char first) noexcept;

// `code` is at most 0x10FFFF.
void appendCharacter(std::int32_t code, std::string& out);

// Bytes from `at` that are UTF-8.
std::size_t validBytes(std::string_view text, std::size_t at) noexcept;
// At most so many bytes from the front, without a part of a character at their end.
std::string_view firstBytes(std::string_view text, std::size_t most) noexcept;
// Bytes at the end of `text` that begin a character which is not there to its end.
std::size_t unfinishedBytes(std::string_view text) noexcept;

} // namespace mr
