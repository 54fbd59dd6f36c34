// Conversations in tests: a tokenizer of bytes, a model's folder with a template, sequences as
// text.

#pragma once

#include "core/data/batch_stream.h"
#include "core/data/data_files.h"

#include <nlohmann/json.hpp>

namespace mr::test {

using Json = nlohmann::ordered_json;

inline constexpr const char* kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' "
    "}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// One id per byte, and control tokens where the template may write them.
class ByteTokenizer : public Tokenizer
{
public:
    static constexpr std::array<std::string_view, 4> kControls{
        "<|im_start|>", "<|im_end|>", "<s>", "</s>"};

    std::string_view kind() const noexcept override { return "bytes"; }
    std::int64_t vocabulary() const noexcept override { return 260; }
    TokenId bos() const noexcept override { return 258; }
    TokenId eos() const noexcept override { return 259; }
    bool addsBos() const noexcept override { return true; }

    Status encode(std::string_view text, std::vector<TokenId>& out) const override
    {
        std::vector<std::size_t> ends;
        const TextPart part{text};
        return encodeParts({&part, 1}, out, ends);
    }

    Status encodeParts(std::span<const TextPart> parts, std::vector<TokenId>& ids,
        std::vector<std::size_t>& ends) const override
    {
        std::size_t before = 0;
        for (const TextPart& part : parts) {
            for (std::size_t at = 0; at < part.text.size();) {
                std::size_t length = 1;
                TokenId id = static_cast<unsigned char>(part.text[at]);
                for (std::size_t c = 0; part.controls && c < kControls.size(); ++c)
                    if (part.text.substr(at).starts_with(kControls[c])) {
                        length = kControls[c].size();
                        id = 256 + static_cast<TokenId>(c);
                    }
                at += length;
                ids.push_back(id);
                ends.push_back(before + at);
            }
            before += part.text.size();
        }
        return {};
    }

    Result<std::string> decode(std::span<const TokenId> ids) const override
    {
        std::string out;
        for (const TokenId id : ids)
            out += piece(id);
        return out;
    }

    // Control tokens as [/s], so that they differ from bytes that look like them.
    std::string piece(TokenId id) const override
    {
        if (id < 256)
            return std::string(1, static_cast<char>(id));
        const std::string_view name = kControls[static_cast<std::size_t>(id - 256)];
        return "[" + std::string(name.substr(1, name.size() - 2)) + "]";
    }
};

// A model's folder with a template, and data beside it.
struct Case {
    Folder folder;
    TokenSetOptions options{.seqLen = 4096};

    explicit Case(const std::string& source, const char* bos = "<s>", const char* eos = "</s>")
    {
        const Json config = {{"chat_template", source}, {"bos_token", bos}, {"eos_token", eos}};
        folder.write("tokenizer_config.json", config.dump());
        options.modelFolder = folder.path();
    }

    Result<TokenSet> build(const std::string& jsonl) const { return build("chat.jsonl", jsonl); }
    // `style` is "template" or "plain"; empty: not given.
    Result<TokenSet> build(
        const std::string& name, const std::string& content, const std::string& style = {}) const
    {
        DataSource source{folder.write(name, content), DataFormat::Auto, {}};
        if (!style.empty())
            source.columns["style"] = style;
        return buildTokenSet({source}, ByteTokenizer(), options);
    }
    std::string error(const std::string& jsonl) const
    {
        const Result<TokenSet> set = build(jsonl);
        return set.ok() ? std::string() : set.status().message();
    }
};

// The sequences as text, each ended by '|'. Braces enclose trained tokens, '~' is a line end.
inline std::string shown(Result<TokenSet> result)
{
    if (!result.ok())
        return result.status().message();
    const TokenSet& set = result.value();
    std::string out;
    TokenSequence sequence;
    for (std::int64_t s = 0; s < set.count(); ++s) {
        bool on = false;
        if (const Status read = set.sequences.read(s, sequence); !read.ok())
            return read.message();
        for (std::size_t t = 0; t < sequence.tokens.size(); ++t) {
            if ((sequence.trained[t] != 0) != on)
                out += on ? "}" : "{";
            on = sequence.trained[t] != 0;
            const std::string piece = ByteTokenizer().piece(sequence.tokens[t]);
            out += piece == "\n" ? "~" : piece;
        }
        out += on ? "}|" : "|";
    }
    return out;
}

inline Json message(const char* role, const std::string& content)
{
    return {{"role", role}, {"content", content}};
}

inline std::string row(std::initializer_list<Json> messages)
{
    Json list = Json::array();
    for (const Json& one : messages)
        list.push_back(one);
    return Json{{"messages", list}}.dump() + "\n";
}

} // namespace mr::test
