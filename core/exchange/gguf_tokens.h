// The list of tokens of a GGUF file, made of a tokenizer's own files.
//
// Threads  Functions of their arguments; they read small files.
// Errors   InvalidArgument names the file and what llama.cpp has no equal of.
// Source   reference: export sections 4.1 and 4.2.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// The numbers are those of the format.
enum class GgufTokenType : std::int32_t {
    Normal = 1,
    Unknown = 2,
    Control = 3,
    UserDefined = 4,
    Unused = 5,
    Byte = 6
};

struct GgufTokens {
    std::string model; // "gpt2", "llama", "gemma4"
    std::string pre;   // the splitter; empty: none is named
    std::vector<std::string> tokens;
    std::vector<float> scores; // empty: the model has none
    std::vector<std::int32_t> types;
    std::vector<std::string> merges;
    bool prefixesSpace = true; // of "llama" and "gemma4"
    // Text is changed before it is cut, which llama.cpp does not do or does otherwise: runs of
    // spaces become one, letters are normalised, a space is put before some texts.
    bool normalises = false;

    // -1: none.
    std::int32_t find(std::string_view token) const;
};

// `rows`: of the embedding. Ids without a token get a text of their own and are unused.
Result<GgufTokens> readGgufTokens(
    const std::filesystem::path& folder, std::int64_t rows, std::string_view architecture);

} // namespace mr
