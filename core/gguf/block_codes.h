// The encodings of tensors in GGUF files: blocks of elements to F32 and back.
//
// decodeBlocks() gives the numbers of ggml's own decoder. encodeBlocks() gives the bytes of its
// reference encoder without an importance matrix.
//
// Threads  Pure functions.
// Source   reference: export section 6; K types: ggml/src/ggml-quants.c of llama.cpp.

#pragma once

#include "core/gguf/gguf_type.h"

#include <cstddef>
#include <span>

namespace mr {

// `out` holds the elements of all `blocks`, which are whole.
void decodeBlocks(GgufType type, std::span<const std::byte> blocks, std::span<float> out);

// F32, F16, BF16, Q8_0, Q5_0, Q4_0, Q4_K and Q6_K.
bool canEncodeBlocks(GgufType type) noexcept;

// Precondition: canEncodeBlocks(), whole blocks, and `out` of the bytes they take.
void encodeBlocks(GgufType type, std::span<const float> values, std::span<std::byte> out);

} // namespace mr
