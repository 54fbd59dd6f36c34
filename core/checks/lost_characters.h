// Signs that a text was read in the wrong encoding before it came here.
//
// Threads  Pure.
// Source   Windows-1252: the WHATWG Encoding Standard's index of it.

#pragma once

#include <string_view>

namespace mr {

// In words for a person; empty: there is no sign. Two are looked for: U+FFFD, which stands where
// bytes could not be decoded; and UTF-8 that was read as Windows-1252 ("Ã©" for "é", "â€™" for an
// apostrophe). Quotation marks that may follow a capital letter are no sign.
std::string_view lostCharacters(std::string_view text) noexcept;

} // namespace mr
