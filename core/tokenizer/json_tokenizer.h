// A tokenizer from tokenizer.json (the Hugging Face tokenizers format), or from what GPT-2's older
// files say in its words.
//
// Errors   InvalidArgument names the file and the field.

#pragma once

#include "core/tokenizer/tokenizer.h"

#include <nlohmann/json_fwd.hpp>

namespace mr {

// `file` is named in messages; what lies beside it (tokenizer_config.json, ...) is read.
Result<std::unique_ptr<Tokenizer>> openTokenizerJson(const std::filesystem::path& file);

// vocab.json and merges.txt: `file` is vocab.json.
Result<std::unique_ptr<Tokenizer>> openGpt2Files(const std::filesystem::path& file);

// Tokenizer from JSON in memory; `file` as of openTokenizerJson().
Result<std::unique_ptr<Tokenizer>> makeJsonTokenizer(
    const std::filesystem::path& file, const nlohmann::json& content);

} // namespace mr
