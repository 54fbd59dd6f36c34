// The tensors of a GGUF file as they are written: what each is filled with, and in which type.
//
// Threads    One thread: all sources share the reader of the model.
// Ownership  Borrows model, config, table and layout.
// Errors     Those of the reader.

#pragma once

#include "core/gguf/gguf_writer.h"
#include "core/model/gguf_layout.h"
#include "core/model/master.h"
#include "core/save/gguf_export.h"

#include <vector>

namespace mr {

// The type of an entry, by its form and the rules of llama.cpp's quantiser.
GgufType typeOfEntry(const GgufEntry& entry, GgufForm form, const ModelConfig& config);

// The largest type that all matrices of a form may have; of general.file_type.
GgufType typeOfForm(GgufForm form) noexcept;

// Elements [first, first + out.size()) of an entry, whole rows in the order of the file.
Status readGgufRows(const GgufEntry& entry, const ParamTable& table, MasterReader& model,
    std::int64_t first, std::span<float> out);

std::vector<GgufSource> ggufSources(const GgufLayout& layout, const ModelConfig& config,
    const ParamTable& table, MasterReader& model, GgufForm form);

} // namespace mr
