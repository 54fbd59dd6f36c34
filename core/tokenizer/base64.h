// Base64 as tokenizer files hold bytes: four digits for three bytes, padded with "=".
//
// Threads  A function of its arguments.

#pragma once

#include <string>
#include <string_view>

namespace mr {

// Appends the bytes that `text` stands for; false: it is no base64, and `out` may have grown.
bool decodeBase64(std::string_view text, std::string& out);

} // namespace mr
