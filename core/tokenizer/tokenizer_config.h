// Files beside a tokenizer file: tokenizer_config.json and its older relatives.
//
// Errors   InvalidArgument names the file and the field.
// Threads  Values.

#pragma once

#include "core/tokenizer/added_tokens.h"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace mr {

struct TokenizerHabits {
    std::optional<bool> addBos;
    std::optional<bool> addEos;
    std::optional<bool> legacy; // Llama: text after a control token begins as a text of its own
    std::string bosText;        // empty: as the model file says
    std::string eosText;
    std::string tokenizerClass;
    std::map<TokenId, AddedToken> added; // above the model file's own ids, or the same
};

inline constexpr std::int64_t kMaxTokenId = std::int64_t{1} << 21; // published: 262144

Status badTokenizer(const std::filesystem::path& file, const std::string& message);
// A JSON object of at most 64 MiB.
Result<nlohmann::json> readJsonObject(const std::filesystem::path& file);
// tokenizer_config.json and added_tokens.json; both may be absent.
Result<TokenizerHabits> readTokenizerHabits(const std::filesystem::path& folder);

} // namespace mr
