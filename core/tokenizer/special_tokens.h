// Control tokens of a tokenizer.json and its neighbours: which are added to a text, and which there
// are besides the model's.
//
// Errors   InvalidArgument names the field.

#pragma once

#include "core/tokenizer/subword_model.h"
#include "core/tokenizer/tokenizer_config.h"

namespace mr {

struct JsonHabits {
    TokenId bos = -1;
    TokenId eos = -1;
    bool addsBos = false;
    bool addsEos = false;
    std::map<TokenId, AddedToken> added;
};

// `folder`: of tokenizer_config.json, special_tokens_map.json and config.json; all may be absent.
Result<JsonHabits> readJsonHabits(
    const JsonNode& root, const WordModel& model, const std::filesystem::path& folder);

} // namespace mr
