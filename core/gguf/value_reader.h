// Values of the metadata of a GGUF file, from the bytes of strangers.
//
// Threads  One thread.
// Errors   DataCorrupt with byte offset and key.
// Source   reference: export section 2.

#pragma once

#include "core/gguf/gguf_value.h"
#include "core/gguf/header_bytes.h"

#include <millrace/status.h>

#include <string>

namespace mr {

// The type and the value behind a key.
Result<GgufValue> readGgufValue(HeaderBytes& in, const std::string& key);

// Bytes of a value, or the least of one without a fixed length; 0: no type of the format.
std::uint64_t ggufValueBytes(GgufValueType type) noexcept;

} // namespace mr
