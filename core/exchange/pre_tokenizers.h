// The splitters that are compiled into llama.cpp, by their names in GGUF files, as the expressions
// that a tokenizer.json has for them.
//
// A tokenizer whose splitter has no name cannot be written: with another one text would become
// other tokens, and nothing would tell.
//
// Threads  Pure functions over constants.
// Errors   InvalidArgument names the stage of the tokenizer.json, or the name that is not known.
// Source   reference: export section 4.2; src/llama-vocab.cpp of llama.cpp, which quotes the
//          expressions of the published files.

#pragma once

#include <millrace/status.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mr {

// tokenizer.ggml.pre for `content`, a byte-level tokenizer.json. `architecture` decides between
// names of one splitter.
Result<std::string> preTokenizerName(const nlohmann::json& content, std::string_view architecture);

// "pre_tokenizer" of a tokenizer.json that cuts as `name` does.
Result<nlohmann::json> preTokenizerOf(std::string_view name);

// Whether a word that is a token is that, however it would be merged.
bool ignoresMerges(std::string_view name) noexcept;

} // namespace mr
