#include "core/exchange/gguf_vocabulary.h"

#include "core/data/chat_sources.h"
#include "core/exchange/gguf_tokens.h"

#include <algorithm>
#include <utility>

namespace mr {
namespace {

void addId(GgufValues& values, const char* name, std::int64_t id)
{
    if (id >= 0)
        values.emplace_back("tokenizer.ggml." + std::string(name) + "_token_id",
            GgufValue::u32(static_cast<std::uint32_t>(id)));
}

// The end of a turn where it is another token than the end of a text, then further ends.
void addEnds(const GgufVocabularySource& source, GgufValues& values)
{
    std::vector<TokenId> others;
    for (const TokenId id : source.ends)
        if (id != source.tokenizer.eos() && std::ranges::count(others, id) == 0)
            others.push_back(id);
    if (!others.empty())
        addId(values, "eot", others[0]);
    if (others.size() > 1)
        addId(values, "eom", others[1]);
}

void addSpecial(const GgufVocabularySource& source, const GgufTokens& tokens, GgufValues& values)
{
    const auto named = readTemplateTokens(source.folder);
    const auto idOf = [&](const char* name) {
        const auto text = named.find(name);
        return text == named.end() ? -1 : tokens.find(text->second);
    };
    addId(values, "bos", source.tokenizer.bos());
    addId(values, "eos", source.tokenizer.eos());
    addId(values, "unknown", idOf("unk_token"));
    const std::int64_t pad = idOf("pad_token");
    addId(values, "padding", pad >= 0 ? pad : source.config.padToken);
    addEnds(source, values);
    values.emplace_back(
        "tokenizer.ggml.add_bos_token", GgufValue::boolean(source.tokenizer.addsBos()));
    values.emplace_back(
        "tokenizer.ggml.add_eos_token", GgufValue::boolean(source.tokenizer.addsEos()));
    if (!tokens.prefixesSpace)
        values.emplace_back("tokenizer.ggml.add_space_prefix", GgufValue::boolean(false));
}

Status addTemplates(const GgufVocabularySource& source, GgufValues& values)
{
    constexpr const char* kKey = "tokenizer.chat_template";
    if (!source.chatTemplate.empty()) {
        values.emplace_back(kKey, GgufValue::string(source.chatTemplate));
        return {};
    }
    MR_ASSIGN(const TemplateSources templates, readTemplateSources(source.folder));
    std::vector<std::string> names;
    for (const auto& [name, text] : templates) {
        const bool isDefault = name == "default";
        if (!isDefault)
            names.push_back(name);
        values.emplace_back(isDefault ? kKey : kKey + ("." + name), GgufValue::string(text));
    }
    if (!names.empty())
        values.emplace_back("tokenizer.chat_templates", GgufValue::strings(std::move(names)));
    return {};
}

} // namespace

Result<GgufVocabulary> ggufVocabulary(const GgufVocabularySource& source)
{
    MR_ASSIGN(
        GgufTokens tokens, readGgufTokens(source.folder, source.config.vocab, source.architecture));
    GgufValues values{{"tokenizer.ggml.model", GgufValue::string(tokens.model)}};
    if (!tokens.pre.empty())
        values.emplace_back("tokenizer.ggml.pre", GgufValue::string(tokens.pre));
    values.emplace_back("tokenizer.ggml.tokens", GgufValue::strings(tokens.tokens));
    if (!tokens.scores.empty())
        values.emplace_back("tokenizer.ggml.scores", GgufValue::f32s(tokens.scores));
    values.emplace_back("tokenizer.ggml.token_type", GgufValue::i32s(tokens.types));
    if (!tokens.merges.empty())
        values.emplace_back("tokenizer.ggml.merges", GgufValue::strings(std::move(tokens.merges)));
    addSpecial(source, tokens, values);
    MR_TRY(addTemplates(source, values));
    return GgufVocabulary{std::move(values), tokens.normalises};
}

} // namespace mr
