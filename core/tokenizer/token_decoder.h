// TokenDecoder: the "decoder" of tokenizer.json: the texts of tokens to one text.
//
// Bytes stay as they are: where upstream puts U+FFFD for bytes that are no UTF-8, they are kept, so
// decoding gives every text back that the model can spell.
//
// Threads  Read-only after read().
// Errors   read(): InvalidArgument names the field. decode(): errors of an expression, or the text
//          grows without measure.

#pragma once

#include "core/tokenizer/replacement.h"

#include <unordered_map>
#include <variant>

namespace mr {

class TokenDecoder
{
public:
    struct Token {
        std::string text;
        bool literal = false; // an added token: stands for itself
    };

    static Result<TokenDecoder> read(const JsonNode& node);
    Result<std::string> decode(std::vector<Token> tokens) const;

private:
    struct ByteLevel {
        std::unordered_map<std::int32_t, char> bytes;
    };
    struct ByteFallback {
    };
    struct Fuse {
    };
    struct Strip {
        std::string content;
        std::size_t start = 0;
        std::size_t stop = 0;
    };
    struct Metaspace {
        std::string replacement;
        bool prefix = true;
    };
    using Step = std::variant<ByteLevel, ByteFallback, Fuse, Strip, Replacement, Metaspace>;

    Status readInto(const JsonNode& node, int depth);
    Status readStrip(const JsonNode& node);
    Status readMetaspace(const JsonNode& node);

    // `mostBytes`: limit of all tokens together after a step that replaces.
    static Status run(const ByteLevel& step, std::vector<Token>& tokens, std::size_t mostBytes);
    static Status run(const ByteFallback& step, std::vector<Token>& tokens, std::size_t mostBytes);
    static Status run(const Fuse& step, std::vector<Token>& tokens, std::size_t mostBytes);
    static Status run(const Strip& step, std::vector<Token>& tokens, std::size_t mostBytes);
    static Status run(const Replacement& step, std::vector<Token>& tokens, std::size_t mostBytes);
    static Status run(const Metaspace& step, std::vector<Token>& tokens, std::size_t mostBytes);

    std::vector<Step> m_steps;
};

} // namespace mr
