// Values of the metadata of a GGUF file as bytes.
//
// Threads  Pure functions.
// Errors   InvalidArgument with the key.
// Source   reference: export section 2.

#pragma once

#include "core/gguf/gguf_value.h"

#include <millrace/status.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mr {

void appendBytes(std::string& out, std::span<const std::byte> bytes);
void appendText(std::string& out, std::string_view text); // its length, then its bytes

template <typename T>
void appendNumber(std::string& out, T value)
{
    appendBytes(out, std::as_bytes(std::span(&value, 1)));
}

// Key, type and value. Refused: data that is not of the value's type, an empty array, which other
// readers refuse, and an array of arrays.
Status appendValue(std::string& out, std::string_view key, const GgufValue& value);

} // namespace mr
