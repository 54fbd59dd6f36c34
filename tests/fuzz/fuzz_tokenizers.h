// Requirements on every tokenizer for every text, however its files were made.

#pragma once

#include "core/tokenizer/tokenizer.h"
#include "fuzz/fuzz_rig.h"

namespace mr::fuzz {

inline void encodeAndDecode(const Tokenizer& tokenizer, std::string_view text)
{
    std::vector<TokenId> ids;
    if (!check(tokenizer.encode(text, ids)))
        return;
    for (const TokenId id : ids)
        require(id >= 0 && id < tokenizer.vocabulary(), "an id outside the vocabulary");
    (void)check(tokenizer.decode(ids));
    const std::vector<TextPart> parts = {
        {text.substr(0, text.size() / 2), true}, {text.substr(text.size() / 2), false}};
    std::vector<std::size_t> ends;
    ids.clear();
    if (!check(tokenizer.encodeParts(parts, ids, ends)))
        return;
    require(ids.size() == ends.size(), "an id without an end");
    for (std::size_t i = 0; i < ends.size(); ++i)
        require(ends[i] <= text.size() && (i == 0 || ends[i - 1] <= ends[i]), "ends that fall");
}

inline void useTokenizer(Result<std::unique_ptr<Tokenizer>> opened, std::string_view text)
{
    if (!check(opened))
        return;
    const Tokenizer& tokenizer = *opened.value();
    for (const std::string& known : kTexts)
        encodeAndDecode(tokenizer, known);
    encodeAndDecode(tokenizer, text);
    for (const TokenId id : {-1, 0, 1, 1 << 30})
        (void)tokenizer.piece(id);
    const std::vector<TokenId> strange = {0, -1, 1 << 30};
    (void)check(tokenizer.decode(strange));
}

} // namespace mr::fuzz
