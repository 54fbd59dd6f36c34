#include "core/tokenizer/json_tokenizer.h"

#include "core/base/file.h"
#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/special_tokens.h"
#include "core/tokenizer/tekken_file.h"
#include "core/tokenizer/text_encoding.h"
#include "core/tokenizer/token_decoder.h"
#include "core/tokenizer/unicode_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

namespace mr {
namespace {

namespace fs = std::filesystem;

class JsonTokenizer final : public Tokenizer
{
public:
    Status load(const fs::path& file, const nlohmann::json& content);
    Status loadTekken(const TekkenFile& read, const fs::path& folder);
    void setNote(std::string note) { m_note = std::move(note); }

    std::string_view kind() const noexcept override
    {
        return m_isTekken ? "tekken" : m_stages.model->kind();
    }
    std::string_view note() const noexcept override { return m_note; }
    std::int64_t vocabulary() const noexcept override
    {
        return static_cast<std::int64_t>(m_pieces.size());
    }
    TokenId bos() const noexcept override { return m_habits.bos; }
    TokenId eos() const noexcept override { return m_habits.eos; }
    bool addsBos() const noexcept override { return m_habits.addsBos; }
    bool addsEos() const noexcept override { return m_habits.addsEos; }

    Status encode(std::string_view text, std::vector<TokenId>& out) const override;
    std::unique_ptr<TextStream> stream() const override;
    Status encodeParts(std::span<const TextPart> parts, std::vector<TokenId>& ids,
        std::vector<std::size_t>& ends) const override;
    Result<std::string> decode(std::span<const TokenId> ids) const override;
    std::string piece(TokenId id) const override;

private:
    Status encodeText(std::string_view text, const ControlRanges& controls,
        std::vector<TokenId>& ids, std::vector<std::size_t>* ends) const;
    Status loadStages(const JsonNode& root);
    Status loadModel(const JsonNode& root, const fs::path& folder);
    Status loadAdded();
    Status loadTekkenControls(const TekkenFile& file, const fs::path& folder);
    std::unique_ptr<EncodeScratch> takeScratch() const;

    EncodingStages m_stages;
    TokenDecoder m_decoder;
    JsonHabits m_habits;
    std::vector<std::string> m_pieces; // by id; empty: a gap
    std::string m_note;
    bool m_isTekken = false;

    mutable std::mutex m_mutex;
    mutable std::vector<std::unique_ptr<EncodeScratch>> m_idle; // guarded by m_mutex
};

std::unique_ptr<EncodeScratch> JsonTokenizer::takeScratch() const
{
    {
        const std::lock_guard lock(m_mutex);
        if (!m_idle.empty()) {
            auto taken = std::move(m_idle.back());
            m_idle.pop_back();
            return taken;
        }
    }
    return std::make_unique<EncodeScratch>(m_stages);
}

Status JsonTokenizer::encodeText(std::string_view text, const ControlRanges& controls,
    std::vector<TokenId>& ids, std::vector<std::size_t>* ends) const
{
    std::unique_ptr<EncodeScratch> scratch = takeScratch();
    const Status done = TextEncoding(m_stages, *scratch, controls, ids, ends).text(text);
    const std::lock_guard lock(m_mutex);
    m_idle.push_back(std::move(scratch));
    return done;
}

Status JsonTokenizer::encode(std::string_view text, std::vector<TokenId>& out) const
{
    return encodeText(text, {}, out, nullptr);
}

std::unique_ptr<TextStream> JsonTokenizer::stream() const
{
    auto stream = makeTextStream(m_stages);
    return stream ? std::move(stream) : Tokenizer::stream();
}

Status JsonTokenizer::encodeParts(std::span<const TextPart> parts, std::vector<TokenId>& ids,
    std::vector<std::size_t>& ends) const
{
    const JoinedParts joined(parts);
    return encodeText(joined.text, joined.controls, ids, &ends);
}

Result<std::string> JsonTokenizer::decode(std::span<const TokenId> ids) const
{
    std::vector<TokenDecoder::Token> tokens;
    for (const TokenId id : ids) {
        if (id < 0 || id >= vocabulary())
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("token id {} is outside the vocabulary of {}", id, vocabulary()));
        const auto added = m_habits.added.find(id);
        const std::string& piece = m_pieces[static_cast<std::size_t>(id)];
        if (added == m_habits.added.end())
            tokens.push_back({piece, false});
        else if (!added->second.special) // a piece of the model, too, may come out of a word
            tokens.push_back({added->second.text, m_stages.model->find(piece) < 0});
    }
    return m_decoder.decode(std::move(tokens));
}

std::string JsonTokenizer::piece(TokenId id) const
{
    const bool known = id >= 0 && id < vocabulary();
    const std::string text = known ? m_pieces[static_cast<std::size_t>(id)] : std::string();
    return text.empty() ? fmt::format("<id {}>", id) : text;
}

Status JsonTokenizer::loadStages(const JsonNode& root)
{
    if (root.has("normalizer")) {
        MR_ASSIGN(m_stages.normalizer, TextNormalizer::read(root.at("normalizer")));
    }
    if (root.has("pre_tokenizer")) {
        MR_ASSIGN(m_stages.preTokenizer, PreTokenizer::read(root.at("pre_tokenizer")));
    }
    if (root.has("decoder")) {
        MR_ASSIGN(m_decoder, TokenDecoder::read(root.at("decoder")));
    }
    return {};
}

// Pieces that are control tokens never come out of a text, even if it spells them.
Status JsonTokenizer::loadModel(const JsonNode& root, const fs::path& folder)
{
    if (!root.has("model"))
        return root.fail("model is missing: this is no tokenizer.json");
    auto model = WordModel::read(root.at("model"), m_stages.preTokenizer.byteLevel());
    if (!model.ok())
        return model.status();
    MR_ASSIGN(m_habits, readJsonHabits(root, *model.value(), folder));
    for (const auto& [id, token] : m_habits.added)
        if (token.special)
            model.value()->hide(token.text);
    m_stages.model = std::move(model).value();
    return {};
}

Status JsonTokenizer::loadAdded()
{
    TokenId last = 0;
    for (const auto& [text, id] : m_stages.model->vocabulary())
        last = std::max(last, id);
    for (const auto& [id, token] : m_habits.added)
        last = std::max(last, id);
    m_pieces.resize(static_cast<std::size_t>(last) + 1);
    for (const auto& [text, id] : m_stages.model->vocabulary())
        m_pieces[static_cast<std::size_t>(id)] = text;
    TextNormalizer::Buffer buffer(m_stages.normalizer);
    for (auto& [id, token] : m_habits.added) {
        std::string& piece = m_pieces[static_cast<std::size_t>(id)];
        if (!piece.empty() && piece != token.text)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format(
                    "the added token \"{}\" and \"{}\" of the vocabulary both have the id {}",
                    token.text, piece, id));
        piece = token.text;
        std::string_view spelling = token.text;
        Origin origin;
        if (token.normalized)
            MR_TRY(m_stages.normalizer.apply(spelling, origin, false, buffer));
        (token.normalized ? m_stages.normalizedTokens : m_stages.rawTokens).add(token, spelling);
        if (!spelling.empty())
            token.text = std::string(spelling); // decoding gives the spelling back, as upstream
    }
    return {};
}

Status JsonTokenizer::load(const fs::path& file, const nlohmann::json& content)
{
    const JsonNode root(content, "");
    MR_TRY(loadStages(root));
    MR_TRY(loadModel(root, file.parent_path()));
    if (std::max(m_habits.bos, m_habits.eos) >= kMaxTokenId)
        return root.fail("the id of BOS or EOS is out of range");
    return loadAdded();
}

// All of them are control tokens, and BOS stands before every text, as in mistral-common. Tokens of
// the vocabulary that spell one stay what they are.
Status JsonTokenizer::loadTekkenControls(const TekkenFile& file, const fs::path& folder)
{
    for (std::size_t id = 0; id < file.controls.size(); ++id)
        m_habits.added[static_cast<TokenId>(id)] = {static_cast<TokenId>(id), file.controls[id]};
    MR_ASSIGN(TokenizerHabits beside, readTokenizerHabits(folder));
    const auto idOf = [&](const std::string& named, std::string_view usual, TokenId& out) {
        const auto found =
            std::find(file.controls.begin(), file.controls.end(), named.empty() ? usual : named);
        out =
            found == file.controls.end() ? -1 : static_cast<TokenId>(found - file.controls.begin());
        return named.empty() || out >= 0;
    };
    if (!idOf(beside.bosText, "<s>", m_habits.bos) || !idOf(beside.eosText, "</s>", m_habits.eos))
        return Status::error(ErrorKind::InvalidArgument,
            "special_tokens has no " + inQuotes(beside.bosText) + " or no " +
                inQuotes(beside.eosText) + ", which tokenizer_config.json names");
    m_habits.addsBos = m_habits.bos >= 0 && beside.addBos.value_or(true);
    m_habits.addsEos = m_habits.eos >= 0 && beside.addEos.value_or(false);
    return {};
}

Status JsonTokenizer::loadTekken(const TekkenFile& read, const fs::path& folder)
{
    m_isTekken = true;
    nlohmann::json stages;
    stages["pre_tokenizer"] = tekkenPreTokenizer(read.pattern);
    stages["decoder"]["type"] = "ByteLevel";
    Status loaded = loadStages(JsonNode(stages, ""));
    auto model = std::make_unique<BpeModel>();
    if (loaded.ok())
        loaded = model->loadRanks(read.tokens, static_cast<TokenId>(read.controls.size()));
    m_stages.model = std::move(model);
    if (loaded.ok())
        loaded = loadTekkenControls(read, folder);
    return loaded.ok() ? loadAdded() : std::move(loaded);
}

} // namespace

Result<std::unique_ptr<Tokenizer>> makeJsonTokenizer(
    const fs::path& file, const nlohmann::json& content, std::string note)
{
    auto tokenizer = std::make_unique<JsonTokenizer>();
    if (const Status loaded = tokenizer->load(file, content); !loaded.ok())
        return badTokenizer(file, loaded.message());
    tokenizer->setNote(std::move(note));
    return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

Result<std::unique_ptr<Tokenizer>> openTokenizerJson(const fs::path& file)
{
    MR_ASSIGN(nlohmann::json content, readJsonObject(file));
    std::string note = takeTekkenPattern(file.parent_path(), content);
    return makeJsonTokenizer(file, content, std::move(note));
}

Result<std::unique_ptr<Tokenizer>> openTekken(const fs::path& file)
{
    MR_ASSIGN(const TekkenFile read, readTekken(file));
    auto tokenizer = std::make_unique<JsonTokenizer>();
    if (const Status loaded = tokenizer->loadTekken(read, file.parent_path()); !loaded.ok())
        return badTokenizer(file, loaded.message());
    return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

} // namespace mr
