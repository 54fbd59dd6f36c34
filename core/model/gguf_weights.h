// The weights of a GGUF file as a master: every tensor under the name, in the order and with the
// values that a model folder has, decoded as it is asked for.
//
// Threads  One thread; blocks on the file.
// Memory   A row at a time where the order differs.
// Errors   InvalidArgument/DataCorrupt names the file and the tensors that are missing, surplus or
//          misshapen.

#pragma once

#include "core/gguf/gguf_file.h"
#include "core/model/gguf_layout.h"
#include "core/model/weights.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace mr {

// In a folder that stands for a GGUF file: a link to it. A GGUF file beside a model's own weights
// has another name.
inline constexpr const char* kGgufLink = "millrace-weights.gguf";

// The file that a folder stands for; empty: it holds weights of its own.
std::filesystem::path ggufOf(const std::filesystem::path& folder);

// Factors of the outputs of blocks, which the file has as tensors: ModelConfig::outputScales.
Status readGgufScales(const std::filesystem::path& file, ModelConfig& config);

// The table outlives the reader.
Result<std::unique_ptr<MasterReader>> openGgufWeights(
    const std::filesystem::path& file, const ModelConfig& config, const ParamTable& table);

struct GgufFacts {
    std::string type; // that most of the weights have: "Q4_K"
    std::uint64_t bytes = 0;
};

// Refuses as openGgufWeights() does; no weight is read.
Result<GgufFacts> checkGgufWeights(
    const std::filesystem::path& file, const ModelConfig& config, const ParamTable& table);

} // namespace mr
