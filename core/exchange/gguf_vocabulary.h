// The tokenizer of a model's folder as metadata of a GGUF file.
//
// Threads  Functions of their arguments; they read small files of the folder.
// Errors   InvalidArgument: a tokenizer that llama.cpp has no equal of, more tokens than the model
//          has rows, two tokens with one text.
// Source   reference: export section 4.

#pragma once

#include "core/gguf/gguf_value.h"
#include "core/model/model_config.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/status.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct GgufVocabularySource {
    const std::filesystem::path& folder;
    const Tokenizer& tokenizer; // of the folder
    const ModelConfig& config;
    std::string_view architecture; // general.architecture
    // Tokens that end an answer, beside the tokenizer's own end of text.
    std::vector<TokenId> ends = {};
    std::string chatTemplate = {}; // in place of the folder's own; empty: that
};

struct GgufVocabulary {
    GgufValues values;       // keys "tokenizer.ggml...." and "tokenizer.chat_template"
    bool normalises = false; // GgufTokens::normalises
};

Result<GgufVocabulary> ggufVocabulary(const GgufVocabularySource& source);

} // namespace mr
