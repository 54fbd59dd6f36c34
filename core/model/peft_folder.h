// Adapters on disk, as PEFT 0.21 writes and reads them: adapter_config.json and
// adapter_model.safetensors. Ours have the hash of their model beside them, in millrace.json, and
// whether it was held in NF4.
//
// Reading looks at every field and every tensor. PEFT itself takes a folder with other modules, a
// missing tensor or an unknown variant of LoRA without an error, and computes something else.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument names the file and the field or tensor, and what is wanted.
// Source   huggingface/peft 5d602fd, checked with peft 0.21.2.

#pragma once

#include "core/model/frozen_model.h"
#include "core/model/weights.h"

#include <millrace/status.h>

#include <filesystem>
#include <memory>
#include <string>

namespace mr {

struct PeftConfig {
    AdapterSettings settings;
    std::string base;          // as the folder names it; may be empty
    std::string baseHash = {}; // weightsHash of that model; empty: the folder is another program's
    double dropout = 0.0;      // that it was trained with; changes nothing in what it computes
};

Result<PeftConfig> readPeftConfig(const std::filesystem::path& folder);

// InvalidArgument: the folder says that its adapter belongs to a model with other weights than this
// one's. `hash` is the weightsHash of `model`.
Status checkBase(const std::filesystem::path& folder, const PeftConfig& config,
    const std::filesystem::path& model, const std::string& hash);

// The table with the tensors that a file has: a tied embedding that is trained whole is there
// twice.
ParamTable peftTable(const ParamTable& table);

// The adapter's weights. `table` is adapterTable() of the folder's settings, and outlives it.
Result<std::unique_ptr<MasterReader>> openPeftWeights(
    const std::filesystem::path& folder, const ParamTable& table);

// Writes the folder; files are written whole. alpha goes out as an integer where it is one, because
// Ollama takes no other.
Status savePeft(const std::filesystem::path& folder, const PeftConfig& config,
    const ParamTable& table, MasterReader& master, ExportType type);

} // namespace mr
