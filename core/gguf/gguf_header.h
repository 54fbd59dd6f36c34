// The header of a GGUF file: bytes of strangers to checked values and places of tensors.
//
// Threads  Pure, but for the file that is read.
// Errors   DataCorrupt or InvalidArgument with file, byte offset and rule.
// Source   reference: export section 2.

#pragma once

#include "core/gguf/gguf_file.h"

#include <millrace/status.h>

#include <cstdint>

namespace mr {

inline constexpr std::uint32_t kGgufVersion = 3;        // that is written
inline constexpr std::size_t kMostTensorNameBytes = 63; // llama.cpp: GGML_MAX_NAME and a zero
inline constexpr std::size_t kMostDimensions = 4;

struct GgufHeader {
    GgufValues values;
    std::vector<GgufTensor> tensors;
    std::map<std::string, std::size_t, std::less<>> keys;
    std::map<std::string, std::size_t, std::less<>> names;
};

Result<GgufHeader> readGgufHeader(const File& file, std::uint64_t fileBytes);

// Bytes of a tensor in a file. An error is only the end of a sentence that begins with its name.
Result<std::uint64_t> ggufTensorBytes(GgufType type, const std::vector<std::int64_t>& ne);

// The least multiple of `alignment`, a power of two, that is not below `offset`.
std::uint64_t alignedOffset(std::uint64_t offset, std::uint64_t alignment) noexcept;

} // namespace mr
