// A model as one GGUF file, as llama.cpp, Ollama and LM Studio read it.
//
// Tensors are read, turned and encoded a few rows at a time, so a model of any size takes some MiB.
// Every tensor is then read back from the file and compared with what it was made of.
//
// Threads  One thread; blocks on files. `progress` is called by it.
// Errors   InvalidArgument: a model, a tokenizer or a type that the format or llama.cpp cannot
//          hold, or the file is there already. DataCorrupt: what was read back lies further off
//          than the type allows. Nothing is left behind where it fails.
// Source   reference: export sections 2 to 6.

#pragma once

#include "core/gguf/gguf_writer.h"
#include "core/save/model_folder.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/status.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mr {

// How the matrices are stored. Q4_K_M is Q4_K with some matrices in Q6_K.
enum class GgufForm : std::uint8_t { F32, F16, BF16, Q8_0, Q4_0, Q4_K_M, Q6_K };

// "f16", "q4_k_m"; nothing: no such form.
std::optional<GgufForm> parseGgufForm(std::string_view name);
std::string_view ggufFormName(GgufForm form) noexcept;

struct GgufOptions {
    std::optional<GgufForm> form;   // none: F16 where every weight fits, else BF16
    bool original = false;          // as MergeOptions::original
    std::vector<TokenId> ends = {}; // that end an answer beside the tokenizer's end of text
    WriteProgress progress = {};
};

// How far tensors of one type lie from what they were made of.
struct GgufError {
    std::int64_t weights = 0;
    double largest = 0.0;  // difference to what was written
    double relative = 0.0; // root of the mean square, over that of the weights
};

struct GgufReport {
    GgufForm form{};
    std::uint64_t bytes = 0;
    std::map<std::string, GgufError> errors; // by the name of the type
    std::vector<std::string> notes;          // where llama.cpp computes something else; sentences
    bool normalises = false;                 // GgufTokens::normalises
};

Result<GgufReport> exportGguf(
    const ModelPlace& place, const std::filesystem::path& out, const GgufOptions& options);

} // namespace mr
