// A tokenizer from tokenizer.json (the Hugging Face tokenizers format), from GPT-2's older files,
// whose content is put into that form, or from Mistral's tekken.json, whose stages are the same.
//
// Errors   InvalidArgument names the file and the field.

#pragma once

#include "core/tokenizer/tokenizer.h"

#include <nlohmann/json_fwd.hpp>

namespace mr {

// `file` is named in messages; the files beside it (tokenizer_config.json, ...) are read.
Result<std::unique_ptr<Tokenizer>> openTokenizerJson(const std::filesystem::path& file);

// vocab.json and merges.txt: `file` is vocab.json.
Result<std::unique_ptr<Tokenizer>> openGpt2Files(const std::filesystem::path& file);

// The same in the words of a tokenizer.json. `lines`: of each merge in merges.txt, from 1.
Result<nlohmann::json> readGpt2Files(
    const std::filesystem::path& file, std::vector<std::size_t>& lines);

// tekken.json (tekken_file.h).
Result<std::unique_ptr<Tokenizer>> openTekken(const std::filesystem::path& file);

// Tokenizer from JSON in memory; `file` as for openTokenizerJson(), `note` as Tokenizer::note().
Result<std::unique_ptr<Tokenizer>> makeJsonTokenizer(
    const std::filesystem::path& file, const nlohmann::json& content, std::string note = {});

} // namespace mr
