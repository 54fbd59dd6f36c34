// An adapter for other programs: a folder as PEFT reads it, or a GGUF file as llama.cpp and Ollama
// put beside the file of the model.
//
// llama.cpp knows LoRA of linear modules and one alpha for all of them: what the scale of a module
// lacks is put into its B. In a GGUF file rows and columns lie as in that of the model.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument: there is no adapter, the form cannot hold it (the sentence says which
//          one can), or `out` is there already. DataCorrupt: what was read back is not what was
//          written. Nothing is left behind where it fails.
// Source   reference: export section 7, adapters section 5.

#pragma once

#include "core/base/write_progress.h"
#include "core/save/folder_export.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mr {

struct AdapterReport {
    std::int64_t modules = 0; // of the model that it changes
    std::string base;         // the model, as the file or folder names it
    std::uint64_t bytes = 0;
    std::vector<std::string> notes = {}; // sentences
};

// In F32, or rounded to `type`. The base is named as the Hub does where it lies in a Hugging Face
// cache.
Result<AdapterReport> exportPeft(const ModelPlace& place, const std::filesystem::path& out,
    ExportType type, const WriteProgress& progress = {});

// In F32.
Result<AdapterReport> exportGgufAdapter(
    const ModelPlace& place, const std::filesystem::path& out, const WriteProgress& progress = {});

} // namespace mr
