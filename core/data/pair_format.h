// How a prompt and its response become one sequence; the one place that says it.
//
//     [BOS] ids("prompt\n") ids("response") [EOS]      trained: the response and EOS
//
// The two are encoded apart, so no token straddles the border and the prompt of training is, token
// for token, the prompt of generation (see README.md).
//
// Threads  Pure.

#pragma once

#include "core/data/documents.h"
#include "core/tokenizer/tokenizer.h"

#include <string>
#include <vector>

namespace mr {

// Ends `prompt` with a line feed unless it is empty or ends in white space already.
inline void closePrompt(std::string& prompt)
{
    if (!prompt.empty() &&
        std::string_view(" \t\r\n").find(prompt.back()) == std::string_view::npos)
        prompt.push_back('\n');
}

// Text before the response, without a chat template: system text and earlier turns come first, each
// on lines of their own.
inline std::string joinedPrompt(const Document& document)
{
    std::string out = document.system;
    closePrompt(out);
    for (const ChatTurn& turn : document.history)
        for (const std::string* text : {&turn.question, &turn.answer}) {
            out += *text;
            closePrompt(out);
        }
    return out + document.prompt;
}

// Appends BOS (where the tokenizer adds it) and the closed prompt. Generation starts from these ids
// to answer as in training.
inline Status encodePrompt(
    const Tokenizer& tokenizer, std::string prompt, std::vector<TokenId>& out)
{
    if (tokenizer.addsBos())
        out.push_back(tokenizer.bos());
    closePrompt(prompt);
    return tokenizer.encode(prompt, out);
}

} // namespace mr
