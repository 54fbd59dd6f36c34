// The metadata of a GGUF file that says how a model computes.
//
// Threads  Pure functions.
// Source   reference: export section 3, families_2026 section 5.1.

#pragma once

#include "core/gguf/gguf_type.h"
#include "core/gguf/gguf_value.h"
#include "core/model/gguf_layout.h"
#include "core/model/model_config.h"

#include <string>

namespace mr {

// general.file_type: the type that most of a file's matrices have.
std::uint32_t ggufFileType(GgufType type) noexcept;

// Keys of the model itself, in the order of llama.cpp's converter; those of its tokenizer follow
// apart. `name` is general.name.
GgufValues ggufModelValues(
    const ModelConfig& config, const GgufLayout& layout, GgufType type, const std::string& name);

} // namespace mr
