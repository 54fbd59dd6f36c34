// Continuing a sequence token by token, from any source of logits.
//
// Threads    The caller's.
// Errors     InvalidArgument: no token, or more than there is room for. Internal: a logit is not
//            finite. Else those of `next`.

#pragma once

#include "core/tokenizer/tokenizer.h"

#include <millrace/status.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct GenerateOptions {
    std::int64_t maxTokens = 256;
    double temperature = 1.0; // 0: greedy
    double topP = 1.0;
    std::uint64_t seed = 1;
    // Each new piece of text as it is decided; false stops.
    std::function<bool(std::string_view piece)> onText;
};

struct Generated {
    std::string text; // the new tokens
    std::vector<TokenId> tokens;
    std::int64_t promptTokens = 0;
    bool ended = false; // by an end token, not by the limit
};

struct Continuation {
    const Tokenizer& tokenizer;
    std::vector<TokenId> tokens; // the prompt
    std::vector<TokenId> ends;   // any of them ends the text, as the tokenizer's own does
    std::int64_t room = 0;       // length of the sequence, in tokens
    std::int64_t vocab = 0;      // logits
    // Writes the logits that follow `tokens`. The first `done` of them were there in the call
    // before.
    std::function<Status(std::span<const TokenId> tokens, std::int64_t done, std::span<float> out)>
        next;
};

Result<Generated> continueTokens(Continuation what, const GenerateOptions& options);

} // namespace mr
