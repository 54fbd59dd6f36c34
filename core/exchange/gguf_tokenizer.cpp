#include "core/exchange/gguf_tokenizer.h"

#include "core/base/shown_text.h"
#include "core/exchange/gguf_tokens.h"
#include "core/exchange/pre_tokenizers.h"
#include "core/exchange/spm_writer.h"
#include "core/tokenizer/subword_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

namespace mr {

using nlohmann::json;

namespace {

using Files = std::map<std::string, std::string>;

class TokenizerMaker
{
public:
    explicit TokenizerMaker(const GgufKeys& keys)
        : m_keys(keys)
    {
    }

    Result<Files> make()
    {
        const auto* tokens = list<std::string>("tokens");
        if (tokens == nullptr || tokens->empty())
            return refuse("tokenizer.ggml.tokens is missing");
        m_tokens = *tokens;
        const auto* types = list<std::int64_t>("token_type");
        if (types != nullptr && types->size() != m_tokens.size())
            return refuse("tokenizer.ggml.token_type has another length than tokens");
        m_types = types != nullptr ? *types
                                   : std::vector<std::int64_t>(m_tokens.size(),
                                         static_cast<std::int64_t>(GgufTokenType::Normal));
        const std::string model = text("model");
        if (model == "gpt2")
            MR_TRY(makeBytePairs());
        else if (model == "gemma4")
            MR_TRY(makeGemma4());
        else if (model == "llama")
            MR_TRY(makePieces());
        else
            return refuse("tokenizer.ggml.model is " + shownName(model) +
                          "; gpt2, llama and gemma4 are known");
        addConfig();
        addTemplates();
        return std::move(m_files);
    }

private:
    template <typename T>
    const std::vector<T>* list(const char* name) const
    {
        const GgufValue* value = m_keys.find(std::string("tokenizer.ggml.") + name);
        return value == nullptr ? nullptr : std::get_if<std::vector<T>>(&value->data);
    }
    std::string text(const char* name) const
    {
        const GgufValue* value = m_keys.find(std::string("tokenizer.ggml.") + name);
        const auto* found = value == nullptr ? nullptr : std::get_if<std::string>(&value->data);
        return found == nullptr ? std::string() : *found;
    }
    bool flag(const char* name, bool missing) const
    {
        const GgufValue* value = m_keys.find(std::string("tokenizer.ggml.") + name);
        const auto* found = value == nullptr ? nullptr : std::get_if<bool>(&value->data);
        return found == nullptr ? missing : *found;
    }

    Status refuse(const std::string& what) const
    {
        return Status::error(
            ErrorKind::InvalidArgument, m_keys.file().path().string() + ": " + what);
    }

    GgufTokenType typeOf(std::size_t id) const { return static_cast<GgufTokenType>(m_types[id]); }
    bool isAdded(std::size_t id) const
    {
        return typeOf(id) == GgufTokenType::Control || typeOf(id) == GgufTokenType::UserDefined;
    }
    std::string tokenOf(const char* special) const
    {
        const std::int64_t id = m_keys.id(special);
        return id < 0 || id >= std::ssize(m_tokens) ? std::string()
                                                    : m_tokens[static_cast<std::size_t>(id)];
    }

    json vocabulary() const
    {
        json vocab = json::object();
        for (std::size_t id = 0; id < m_tokens.size(); ++id)
            if (!isAdded(id) && typeOf(id) != GgufTokenType::Unused)
                vocab[m_tokens[id]] = id;
        return vocab;
    }

    json addedTokens() const
    {
        json added = json::array();
        for (std::size_t id = 0; id < m_tokens.size(); ++id)
            if (isAdded(id))
                added.push_back({{"id", id}, {"content", m_tokens[id]},
                    {"special", typeOf(id) == GgufTokenType::Control}, {"normalized", false},
                    {"lstrip", false}, {"rstrip", false}, {"single_word", false}});
        return added;
    }

    // "a b", as the file has it; a merge of added tokens has no meaning in a tokenizer.json.
    json merges(const json& vocab) const
    {
        json out = json::array();
        const auto* list = this->list<std::string>("merges");
        for (const std::string& merge : list == nullptr ? std::vector<std::string>() : *list) {
            const std::size_t space = merge.find(' ', 1);
            if (space == std::string::npos)
                continue;
            std::string left = merge.substr(0, space);
            std::string right = merge.substr(space + 1);
            if (vocab.contains(left) && vocab.contains(right) && vocab.contains(left + right))
                out.push_back(json::array({std::move(left), std::move(right)}));
        }
        return out;
    }

    void put(json content)
    {
        content["version"] = "1.0";
        content["added_tokens"] = addedTokens();
        m_files["tokenizer.json"] = content.dump(-1, ' ', false, json::error_handler_t::replace);
    }

    Status makeBytePairs()
    {
        const std::string pre = text("pre");
        MR_ASSIGN(json splitter, preTokenizerOf(pre));
        json vocab = vocabulary();
        json content{{"normalizer", nullptr}, {"pre_tokenizer", std::move(splitter)},
            {"decoder", {{"type", "ByteLevel"}}}, {"post_processor", nullptr}};
        json list = merges(vocab);
        content["model"] = {{"type", "BPE"}, {"ignore_merges", ignoresMerges(pre)},
            {"vocab", std::move(vocab)}, {"merges", std::move(list)}};
        put(std::move(content));
        return {};
    }

    // Merges over whole lines, with a mark for spaces.
    Status makeGemma4()
    {
        json vocab = vocabulary();
        json list = merges(vocab);
        json content{{"normalizer", {{"type", "Replace"}, {"pattern", {{"String", " "}}},
                                        {"content", std::string(kSpaceMark)}}},
            {"pre_tokenizer", {{"type", "Split"}, {"pattern", {{"String", " "}}},
                                  {"behavior", "MergedWithPrevious"}, {"invert", false}}},
            {"post_processor", nullptr},
            {"decoder", {{"type", "Sequence"},
                            {"decoders", {{{"type", "Replace"},
                                              {"pattern", {{"String", std::string(kSpaceMark)}}},
                                              {"content", " "}},
                                             {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}}};
        content["model"] = {{"type", "BPE"}, {"byte_fallback", true}, {"fuse_unk", true},
            {"ignore_merges", false}, {"vocab", std::move(vocab)}, {"merges", std::move(list)}};
        put(std::move(content));
        return {};
    }

    Status makePieces()
    {
        const auto* scores = list<double>("scores");
        if (scores == nullptr || scores->size() != m_tokens.size())
            return refuse("tokenizer.ggml.scores is missing or of another length than tokens");
        std::vector<SpmModel::Piece> pieces;
        for (std::size_t id = 0; id < m_tokens.size(); ++id)
            pieces.push_back({m_tokens[id], static_cast<float>((*scores)[id]),
                static_cast<SpmModel::Type>(m_types[id])});
        if (std::ranges::count(pieces, SpmModel::Type::Unknown, &SpmModel::Piece::type) == 0)
            markUnknown(pieces);
        m_files["tokenizer.model"] =
            writeSpmModel(pieces, {flag("add_space_prefix", true), tokenOf("bos"), tokenOf("eos")});
        return {};
    }

    // SentencePiece wants one; some programs write it as a control token.
    void markUnknown(std::vector<SpmModel::Piece>& pieces) const
    {
        const std::int64_t named = m_keys.id("unknown");
        const auto id = static_cast<std::size_t>(named >= 0 ? named : 0);
        if (id < pieces.size())
            pieces[id].type = SpmModel::Type::Unknown;
    }

    void addConfig()
    {
        json config{{"add_bos_token", flag("add_bos_token", text("model") == "llama")},
            {"add_eos_token", flag("add_eos_token", false)}, {"legacy", false}};
        for (const auto& [field, name] : {std::pair{"bos_token", "bos"}, {"eos_token", "eos"},
                 {"unk_token", "unknown"}, {"pad_token", "padding"}})
            if (const std::string token = tokenOf(name); !token.empty())
                config[field] = token;
        m_files["tokenizer_config.json"] =
            config.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
    }

    void addTemplates()
    {
        const GgufValue* value = m_keys.find("tokenizer.chat_template");
        const auto* source = value == nullptr ? nullptr : std::get_if<std::string>(&value->data);
        if (source != nullptr)
            m_files["chat_template.jinja"] = *source;
    }

    const GgufKeys& m_keys;
    std::vector<std::string> m_tokens;
    std::vector<std::int64_t> m_types;
    Files m_files;
};

} // namespace

Result<std::map<std::string, std::string>> ggufTokenizerFiles(const GgufKeys& keys)
{
    return TokenizerMaker(keys).make();
}

} // namespace mr
