#include "core/data/json_tokenizer.h"

#include "core/base/file.h"
#include "core/data/json_habits.h"
#include "core/data/pre_tokenizer.h"
#include "core/data/text_normalizer.h"
#include "core/data/token_decoder.h"
#include "core/data/unicode_text.h"
#include "core/data/word_model.h"

#include <algorithm>
#include <mutex>

namespace mr {
namespace {

namespace fs = std::filesystem;

// What one thread needs while it encodes.
struct EncodeScratch {
    EncodeScratch(
        const TextNormalizer& normalizer, const PreTokenizer& preTokenizer, const WordModel& model)
        : normalized(normalizer)
        , pieces(preTokenizer)
        , words(model.makeScratch())
    {
    }

    TextNormalizer::Buffer normalized;
    PreTokenizer::Buffer pieces;
    std::unique_ptr<WordModel::Scratch> words;
};

class JsonTokenizer final : public Tokenizer
{
public:
    Status load(const fs::path& file, const nlohmann::json& content);

    std::string_view kind() const noexcept override { return m_model->kind(); }
    std::int64_t vocabulary() const noexcept override
    {
        return static_cast<std::int64_t>(m_pieces.size());
    }
    TokenId bos() const noexcept override { return m_habits.bos; }
    TokenId eos() const noexcept override { return m_habits.eos; }
    bool addsBos() const noexcept override { return m_habits.addsBos; }
    bool addsEos() const noexcept override { return m_habits.addsEos; }

    Status encode(std::string_view text, std::vector<TokenId>& out) const override;
    Status encodeParts(std::span<const TextPart> parts, std::vector<TokenId>& ids,
        std::vector<std::size_t>& ends) const override;
    Result<std::string> decode(std::span<const TokenId> ids) const override;
    std::string piece(TokenId id) const override;

private:
    // A text on its way through the stages.
    class Encoding final : public WordSink
    {
    public:
        Encoding(const JsonTokenizer& owner, EncodeScratch& scratch, const ControlRanges& controls,
            std::vector<TokenId>& ids, std::vector<std::size_t>* ends);

        Status text(std::string_view text);
        Status word(const TextPiece& piece) override;

    private:
        Status section(const TextPiece& piece);
        Status validSection(TextPiece piece);
        // Ends never fall, though white space may belong to two tokens.
        void putEnd(std::size_t end)
        {
            m_lastEnd = std::max(m_lastEnd, end);
            m_ends->push_back(m_lastEnd);
        }
        // Cuts `tokens` out and hands what is between them to `between`.
        template <typename Between>
        Status cut(const AddedTokens& tokens, const TextPiece& piece, const Between& between);

        const JsonTokenizer& m_owner;
        EncodeScratch& m_scratch;
        const ControlRanges& m_controls;
        std::vector<TokenId>& m_ids;
        std::vector<std::size_t>* m_ends; // null: nobody asks
        std::size_t m_lastEnd = 0;
    };

    Status encodeText(std::string_view text, const ControlRanges& controls,
        std::vector<TokenId>& ids, std::vector<std::size_t>* ends) const;
    Status loadStages(const JsonNode& root);
    Status loadModel(const JsonNode& root, const fs::path& folder);
    Status loadAdded();
    std::unique_ptr<EncodeScratch> takeScratch() const;

    TextNormalizer m_normalizer;
    PreTokenizer m_preTokenizer;
    std::unique_ptr<const WordModel> m_model;
    TokenDecoder m_decoder;
    JsonHabits m_habits;
    AddedTokens m_rawTokens;           // looked for in the text as it is
    AddedTokens m_normalizedTokens;    // and after normalisation
    std::vector<std::string> m_pieces; // by id; empty: a gap

    mutable std::mutex m_mutex;
    mutable std::vector<std::unique_ptr<EncodeScratch>> m_idle; // guarded by m_mutex
};

TextPiece partOf(const TextPiece& piece, std::size_t begin, std::size_t end)
{
    Origin origin = piece.origin;
    origin.base = piece.origin.at(begin);
    if (origin.ends != nullptr)
        origin.ends += begin;
    return {piece.text.substr(begin, end - begin), origin};
}

JsonTokenizer::Encoding::Encoding(const JsonTokenizer& owner, EncodeScratch& scratch,
    const ControlRanges& controls, std::vector<TokenId>& ids, std::vector<std::size_t>* ends)
    : m_owner(owner)
    , m_scratch(scratch)
    , m_controls(controls)
    , m_ids(ids)
    , m_ends(ends)
{
}

template <typename Between>
Status JsonTokenizer::Encoding::cut(
    const AddedTokens& tokens, const TextPiece& piece, const Between& between)
{
    AddedTokens::Match last;
    AddedTokens::Match match;
    while (tokens.find(piece.text, last, m_controls, piece.origin, match)) {
        if (match.begin > last.end)
            MR_TRY(between(partOf(piece, last.end, match.begin)));
        m_ids.push_back(match.token->id);
        if (m_ends != nullptr)
            putEnd(piece.origin.at(match.end));
        last = match;
    }
    return last.end < piece.text.size() ? between(partOf(piece, last.end, piece.text.size()))
                                        : Status();
}

Status JsonTokenizer::Encoding::text(std::string_view text)
{
    return cut(
        m_owner.m_rawTokens, {text, {}}, [this](const TextPiece& piece) { return section(piece); });
}

// Bytes that are no UTF-8 are words of their own: nothing but the model can look at them.
Status JsonTokenizer::Encoding::section(const TextPiece& piece)
{
    if (isUtf8(piece.text))
        return validSection(piece);
    for (std::size_t at = 0; at < piece.text.size();) {
        std::size_t end = at + validBytes(piece.text, at);
        if (end > at)
            MR_TRY(validSection(partOf(piece, at, end)));
        at = end;
        while (end < piece.text.size() && characterAt(piece.text, end).code < 0)
            ++end;
        if (end > at)
            MR_TRY(word(partOf(piece, at, end)));
        at = end;
    }
    return {};
}

Status JsonTokenizer::Encoding::validSection(TextPiece piece)
{
    // Control tokens are looked for by where they come from.
    const bool tracked = m_ends != nullptr || !m_controls.empty();
    MR_TRY(m_owner.m_normalizer.apply(piece.text, piece.origin, tracked, m_scratch.normalized));
    return cut(m_owner.m_normalizedTokens, piece, [&](const TextPiece& part) {
        return m_owner.m_preTokenizer.split(part, tracked, m_scratch.pieces, *this);
    });
}

Status JsonTokenizer::Encoding::word(const TextPiece& piece)
{
    const WordModel& model = *m_owner.m_model;
    std::span<const WordModel::Symbol> symbols;
    for (std::size_t at = 0; at < piece.text.size();) {
        const std::size_t bytes = model.wordBytes(piece.text.substr(at));
        if (bytes > model.maxWordBytes())
            return Status::error(ErrorKind::InvalidArgument,
                "a word of " + std::to_string(bytes) +
                    " bytes cannot be encoded; split the text into documents (--split)");
        MR_TRY(model.encode(piece.text.substr(at, bytes), *m_scratch.words, symbols));
        std::size_t end = at;
        for (const WordModel::Symbol& symbol : symbols) {
            m_ids.push_back(symbol.id);
            end += symbol.bytes;
            if (m_ends != nullptr)
                putEnd(piece.origin.at(end));
        }
        at += bytes;
    }
    return {};
}

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
    return std::make_unique<EncodeScratch>(m_normalizer, m_preTokenizer, *m_model);
}

Status JsonTokenizer::encodeText(std::string_view text, const ControlRanges& controls,
    std::vector<TokenId>& ids, std::vector<std::size_t>* ends) const
{
    std::unique_ptr<EncodeScratch> scratch = takeScratch();
    const Status done = Encoding(*this, *scratch, controls, ids, ends).text(text);
    const std::lock_guard lock(m_mutex);
    m_idle.push_back(std::move(scratch));
    return done;
}

Status JsonTokenizer::encode(std::string_view text, std::vector<TokenId>& out) const
{
    return encodeText(text, {}, out, nullptr);
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
            return Status::error(ErrorKind::InvalidArgument, "token id " + std::to_string(id) +
                                                                 " is outside the vocabulary of " +
                                                                 std::to_string(vocabulary()));
        const auto added = m_habits.added.find(id);
        const std::string& piece = m_pieces[static_cast<std::size_t>(id)];
        if (added == m_habits.added.end())
            tokens.push_back({piece, false});
        else if (!added->second.special) // a piece of the model, too, may come out of a word
            tokens.push_back({added->second.text, m_model->find(piece) < 0});
    }
    return m_decoder.decode(std::move(tokens));
}

std::string JsonTokenizer::piece(TokenId id) const
{
    const bool known = id >= 0 && id < vocabulary();
    const std::string text = known ? m_pieces[static_cast<std::size_t>(id)] : std::string();
    return text.empty() ? "<id " + std::to_string(id) + ">" : text;
}

Status JsonTokenizer::loadStages(const JsonNode& root)
{
    if (root.has("normalizer")) {
        Result<TextNormalizer> read = TextNormalizer::read(root.at("normalizer"));
        if (!read.ok())
            return read.status();
        m_normalizer = std::move(read).value();
    }
    if (root.has("pre_tokenizer")) {
        Result<PreTokenizer> read = PreTokenizer::read(root.at("pre_tokenizer"));
        if (!read.ok())
            return read.status();
        m_preTokenizer = std::move(read).value();
    }
    if (root.has("decoder")) {
        Result<TokenDecoder> read = TokenDecoder::read(root.at("decoder"));
        if (!read.ok())
            return read.status();
        m_decoder = std::move(read).value();
    }
    return {};
}

// Pieces that are control tokens never come out of a text, whatever it spells.
Status JsonTokenizer::loadModel(const JsonNode& root, const fs::path& folder)
{
    if (!root.has("model"))
        return root.fail("model is missing: this is no tokenizer.json");
    auto model = WordModel::read(root.at("model"), m_preTokenizer.byteLevel());
    if (!model.ok())
        return model.status();
    Result<JsonHabits> habits = readJsonHabits(root, *model.value(), folder);
    if (!habits.ok())
        return habits.status();
    m_habits = std::move(habits).value();
    for (const auto& [id, token] : m_habits.added)
        if (token.special)
            model.value()->hide(token.text);
    m_model = std::move(model).value();
    return {};
}

Status JsonTokenizer::loadAdded()
{
    TokenId last = 0;
    for (const auto& [text, id] : m_model->vocabulary())
        last = std::max(last, id);
    for (const auto& [id, token] : m_habits.added)
        last = std::max(last, id);
    m_pieces.resize(static_cast<std::size_t>(last) + 1);
    for (const auto& [text, id] : m_model->vocabulary())
        m_pieces[static_cast<std::size_t>(id)] = text;
    TextNormalizer::Buffer buffer(m_normalizer);
    for (auto& [id, token] : m_habits.added) {
        std::string& piece = m_pieces[static_cast<std::size_t>(id)];
        if (!piece.empty() && piece != token.text)
            return Status::error(ErrorKind::InvalidArgument,
                "the added token \"" + token.text + "\" and \"" + piece +
                    "\" of the vocabulary both have the id " + std::to_string(id));
        piece = token.text;
        std::string_view spelling = token.text;
        Origin origin;
        if (token.normalized)
            MR_TRY(m_normalizer.apply(spelling, origin, false, buffer));
        (token.normalized ? m_normalizedTokens : m_rawTokens).add(token, spelling);
        if (!spelling.empty())
            token.text = std::string(spelling); // what decoding gives back, as upstream
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

} // namespace

Result<std::unique_ptr<Tokenizer>> makeJsonTokenizer(
    const fs::path& file, const nlohmann::json& content)
{
    auto tokenizer = std::make_unique<JsonTokenizer>();
    if (const Status loaded = tokenizer->load(file, content); !loaded.ok())
        return badTokenizer(file, loaded.message());
    return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

Result<std::unique_ptr<Tokenizer>> openTokenizerJson(const fs::path& file)
{
    Result<nlohmann::json> content = readJsonObject(file);
    return content.ok() ? makeJsonTokenizer(file, content.value()) : content.status();
}

} // namespace mr
