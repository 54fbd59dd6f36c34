// Input of a model that is asked something: a prompt as tokens, and the tokens that end its answer.
//
// Threads  Functions of their arguments; they read small files of the model's folder.
// Errors   InvalidArgument: no chat template where one is needed, one that refuses the prompt, a
//          generation_config.json that cannot be read.

#pragma once

#include "core/model/model_config.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/status.h>
#include <millrace/try_it.h>

#include <filesystem>
#include <string>
#include <vector>

namespace mr {

struct ReadPrompt {
    std::string text; // as Answer::read
    bool byTemplate = false;
    std::vector<TokenId> tokens;
    // End tokens beside the tokenizer's own: those of config.json and generation_config.json, and
    // the token that the template puts behind an answer.
    std::vector<TokenId> ends;
};

// `folder` is where the model's tokenizer and template are; `chatTemplate`: the text of another one
// that the model is being taught.
Result<ReadPrompt> readPrompt(const Prompt& prompt, const Tokenizer& tokenizer,
    const ModelConfig& config, const std::filesystem::path& folder,
    const std::string& chatTemplate = {});

// Ranges of the figures of a prompt, in the words of the command line.
Status checkPrompt(const Prompt& prompt);

} // namespace mr
