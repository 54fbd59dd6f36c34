#include "core/tokenizer/sentencepiece_tokenizer.h"

#include "core/base/file.h"
#include "core/tokenizer/spm_model.h"
#include "core/tokenizer/spm_unigram.h"
#include "core/tokenizer/tokenizer_config.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <system_error>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMaxModelBytes = std::uint64_t{256} << 20; // the largest published: 5 MB
// Pieces of text this long are cheap for the library's heap of merges; one long string is slower.
constexpr std::size_t kChunkBytes = std::size_t{1} << 14;
// The library counts positions in int.
constexpr std::size_t kMaxUncutBytes = std::size_t{1} << 30;

using Processor = sentencepiece::SentencePieceProcessor;

// The library may throw (its trie builder does); nothing of that leaves this function.
Status load(Processor& processor, std::string_view bytes)
{
    try {
        const auto status = processor.LoadFromSerializedProto(bytes);
        if (!status.ok())
            return Status::error(ErrorKind::InvalidArgument, status.error_message());
    } catch (const std::exception& e) {
        return Status::error(ErrorKind::InvalidArgument, e.what());
    }
    return {};
}

class SentencePieceTokenizer final : public Tokenizer
{
public:
    Status open(const fs::path& file, std::string_view bytes, TokenizerHabits habits)
    {
        Result<SpmModel> model = readSpmModel(bytes);
        if (!model.ok())
            return badTokenizer(file, model.status().message());
        m_model = std::move(model).value();
        Status loaded = load(m_processor, bytes);
        if (loaded.ok())
            loaded = load(m_continuation,
                m_model.addDummyPrefix ? withoutDummyPrefix(bytes) : std::string(bytes));
        if (!loaded.ok())
            return badTokenizer(file, "SentencePiece cannot use it: " + loaded.message());
        m_vocabulary = m_processor.GetPieceSize();
        loadUnigram();
        return applyHabits(file, std::move(habits));
    }

    std::string_view kind() const noexcept override { return "sentencepiece"; }
    std::int64_t vocabulary() const noexcept override { return m_vocabulary; }
    TokenId bos() const noexcept override { return m_bos; }
    TokenId eos() const noexcept override { return m_eos; }
    bool addsBos() const noexcept override { return m_addsBos; }
    bool addsEos() const noexcept override { return m_addsEos; }

    Status encode(std::string_view text, std::vector<TokenId>& out) const override;
    std::unique_ptr<TextStream> stream() const override;
    Status encodeParts(std::span<const TextPart> parts, std::vector<TokenId>& ids,
        std::vector<std::size_t>& ends) const override;
    Result<std::string> decode(std::span<const TokenId> ids) const override;
    std::string piece(TokenId id) const override;

private:
    // Where a run stands that is encoded by itself.
    struct Place {
        bool first = true;   // the dummy prefix belongs in front of it
        bool goesOn = false; // it is the rest of a run whose last id is `before`
        TokenId before = -1;
        bool isEnd = true; // stream: nothing comes behind the text
        bool isStream = false;
        SpmUnigram::Part part; // stream only
    };
    class Stream;

    void loadUnigram();
    Status applyHabits(const fs::path& file, TokenizerHabits&& habits);
    Status findSpecial(const fs::path& file, const char* name, const std::string& text,
        TokenId fallback, TokenId& out) const;
    // The ids of a text and, if `ends` is given, where each ends; controls are looked for in
    // `controls` only.
    // `place`: on entry the place of the text, on return the place behind it.
    Status encodeCut(std::string_view text, const ControlRanges& controls, Place& place,
        std::vector<TokenId>& out, std::vector<std::size_t>* ends) const;

    Status encodeRun(std::string_view text, const Place& place, std::vector<TokenId>& out) const;
    void encodePart(
        std::string_view text, bool ends, Place& place, std::vector<TokenId>& out) const;
    Status encodeRunWithEnds(std::string_view text, bool first, std::size_t base,
        std::vector<TokenId>& out, std::vector<std::size_t>& ends) const;
    Status decodeRun(const std::vector<int>& ids, bool first, std::string& out) const;

    SpmModel m_model;
    SpmUnigram m_unigram; // for streams
    Processor m_processor;
    Processor m_continuation; // m_processor for text that is not at the start: no dummy prefix
    std::map<TokenId, AddedToken> m_added; // ids from GetPieceSize() on
    AddedTokens m_cut;                     // cut out of a text before the library sees it
    bool m_prefixEach = true; // the dummy prefix begins every run between cuts, not only the first
    std::int64_t m_vocabulary = 0;
    TokenId m_bos = -1;
    TokenId m_eos = -1;
    bool m_addsBos = false;
    bool m_addsEos = false;
};

Status SentencePieceTokenizer::findSpecial(const fs::path& file, const char* name,
    const std::string& text, TokenId fallback, TokenId& out) const
{
    out = fallback;
    if (text.empty())
        return {};
    const TokenId id = m_processor.PieceToId(text);
    if (id >= 0 && id < m_processor.GetPieceSize() && m_processor.IdToPiece(id) == text) {
        out = id;
        return {};
    }
    for (const auto& [addedId, token] : m_added) {
        if (token.text == text) {
            out = addedId;
            return {};
        }
    }
    return badTokenizer(file.parent_path() / "tokenizer_config.json",
        std::string(name) + " \"" + text + "\" is neither in " + file.filename().string() +
            " nor among the added tokens");
}

void SentencePieceTokenizer::loadUnigram()
{
    if (m_model.vocabulary.empty())
        return;
    std::array<TokenId, 256> byteIds{};
    for (std::size_t byte = 0; byte < byteIds.size(); ++byte) {
        constexpr std::string_view kDigits = "0123456789ABCDEF";
        byteIds[byte] = m_processor.PieceToId(
            std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
    }
    m_unigram.load(m_model, byteIds, m_processor.unk_id());
    m_model.vocabulary = {};
}

Status SentencePieceTokenizer::applyHabits(const fs::path& file, TokenizerHabits&& habits)
{
    const TokenId own = m_processor.GetPieceSize();
    for (TokenId id = 0; id < own; ++id)
        if (m_processor.IsControl(id))
            m_cut.add({id, m_processor.IdToPiece(id)}, m_processor.IdToPiece(id));
    for (auto& [id, token] : habits.added) {
        if (id >= own || token.special)
            m_cut.add(token, token.text);
        if (id < own)
            continue; // a second name for a piece of the model file
        m_vocabulary = std::max<std::int64_t>(m_vocabulary, std::int64_t{id} + 1);
        m_added.emplace(id, std::move(token));
    }
    m_prefixEach = habits.legacy.value_or(true);
    MR_TRY(findSpecial(file, "bos_token", habits.bosText, m_processor.bos_id(), m_bos));
    MR_TRY(findSpecial(file, "eos_token", habits.eosText, m_processor.eos_id(), m_eos));
    m_addsBos = habits.addBos.value_or(true) && m_bos >= 0;
    m_addsEos = habits.addEos.value_or(false) && m_eos >= 0;
    return {};
}

Status tooLong(std::size_t bytes)
{
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("a text of {} bytes cannot be encoded in one piece; split it into documents of "
                    "at most 1 GiB (--split)",
            bytes));
}

Status cannotEncode(const sentencepiece::util::Status& status)
{
    return Status::error(
        ErrorKind::Internal, std::string("SentencePiece cannot encode: ") + status.error_message());
}

// Encodes with our own search: the library cannot go on with a Unigram text where it stopped.
void SentencePieceTokenizer::encodePart(
    std::string_view text, bool ends, Place& place, std::vector<TokenId>& out) const
{
    const bool begins = !place.goesOn;
    const bool prefixed = begins && place.first && m_model.addDummyPrefix;
    m_unigram.encode(m_model.normalizer.normalized(text, begins, prefixed, ends), place.part, out);
}

Status SentencePieceTokenizer::encodeRun(
    std::string_view text, const Place& place, std::vector<TokenId>& out) const
{
    std::vector<int> ids;
    TokenId before = place.before;
    for (bool begins = !place.goesOn; !text.empty(); begins = false) {
        const std::size_t cut = m_model.mayBeCut() && text.size() > kChunkBytes
                                    ? m_model.cutBehind(text, kChunkBytes)
                                    : std::string_view::npos;
        const std::string_view chunk = text.substr(0, cut);
        text.remove_prefix(chunk.size());
        if (chunk.size() > kMaxUncutBytes)
            return tooLong(chunk.size());
        const bool prefixed = begins ? place.first : m_model.isPrefixOfRest(chunk);
        const auto status = (prefixed ? m_processor : m_continuation).Encode(chunk, &ids);
        if (!status.ok())
            return cannotEncode(status);
        // Without byte fallback neighbouring unknown characters are one token, also across a cut.
        const bool joined = !begins && !m_model.byteFallback && !ids.empty() &&
                            ids.front() == m_processor.unk_id() && before == ids.front();
        out.insert(out.end(), ids.begin() + (joined ? 1 : 0), ids.end());
        before = ids.empty() ? before : ids.back();
    }
    return {};
}

// The library leaves the span of a token empty that stands for no byte (the dummy prefix) or for
// part of a character (byte fallback): it ends with the next one.
Status SentencePieceTokenizer::encodeRunWithEnds(std::string_view text, bool first,
    std::size_t base, std::vector<TokenId>& out, std::vector<std::size_t>& ends) const
{
    if (text.size() > kMaxUncutBytes)
        return tooLong(text.size());
    sentencepiece::ImmutableSentencePieceText spans;
    const auto status = (first ? m_processor : m_continuation).Encode(text, spans.mutable_proto());
    if (!status.ok())
        return cannotEncode(status);
    const std::size_t begin = out.size();
    for (std::size_t i = 0; i < spans.pieces_size(); ++i) {
        const auto piece = spans.pieces(static_cast<int>(i));
        out.push_back(static_cast<TokenId>(piece.id()));
        ends.push_back(base + piece.end());
    }
    for (std::size_t i = out.size() - begin; i-- > 1;) {
        const auto piece = spans.pieces(static_cast<int>(i) - 1);
        std::size_t& end = ends[ends.size() - (out.size() - begin) + i - 1];
        if (piece.begin() == piece.end())
            end = *(&end + 1);
    }
    return {};
}

Status SentencePieceTokenizer::encodeCut(std::string_view text, const ControlRanges& controls,
    Place& place, std::vector<TokenId>& out, std::vector<std::size_t>* ends) const
{
    AddedTokens::Match match;
    for (std::size_t at = 0; at < text.size(); at = match.end) {
        const bool found = m_cut.find(text, {at, at, at, nullptr}, controls, {}, match);
        if (!found)
            match = {text.size(), text.size(), text.size(), nullptr};
        const std::string_view run = text.substr(at, match.begin - at);
        const std::size_t count = out.size();
        if (place.isStream && !m_model.isBpe)
            encodePart(run, found || place.isEnd, place, out);
        else if (!run.empty())
            MR_TRY(ends == nullptr ? encodeRun(run, place, out)
                                   : encodeRunWithEnds(run, place.first, at, out, *ends));
        place.before = found ? -1 : out.size() > count ? out.back() : place.before;
        place.first = found && m_prefixEach;
        place.goesOn = !found;
        if (found)
            place.part = {};
        if (found)
            out.push_back(match.token->id);
        if (found && ends != nullptr)
            ends->push_back(match.end);
    }
    return {};
}

Status SentencePieceTokenizer::encode(std::string_view text, std::vector<TokenId>& out) const
{
    Place place;
    return encodeCut(text, {}, place, out, nullptr);
}

// Cuts where neither a piece nor an added token holds both sides.
class SentencePieceTokenizer::Stream final : public TextStream
{
public:
    explicit Stream(const SentencePieceTokenizer& owner)
        : m_owner(owner)
    {
    }

    Result<std::size_t> encode(
        std::string_view text, bool isEnd, std::vector<TokenId>& out) override
    {
        if (!isEnd && text.size() < m_wait) // where the last time found no place
            return std::size_t{0};
        const std::size_t end = isEnd ? text.size() : lastCut(text);
        m_place.isStream = true;
        m_place.isEnd = isEnd;
        MR_TRY(m_owner.encodeCut(text.substr(0, end), {}, m_place, out, nullptr));
        m_wait = end > 0 ? 0 : 2 * text.size();
        return end;
    }

private:
    // Halves the rest behind the place found, so few places are looked at.
    std::size_t lastCut(std::string_view text) const
    {
        std::size_t last = 0;
        std::size_t from = std::max(text.size() / 2, std::size_t{1});
        while (true) {
            const std::size_t cut = m_owner.m_model.cutBehind(text, from);
            if (cut == std::string_view::npos)
                return last;
            const bool apart = m_owner.m_cut.areApartAt(text, cut);
            last = apart ? cut : last;
            from = cut + 1 + (apart ? (text.size() - cut) / 2 : 0);
        }
    }

    const SentencePieceTokenizer& m_owner;
    Place m_place;
    std::size_t m_wait = 0;
};

std::unique_ptr<TextStream> SentencePieceTokenizer::stream() const
{
    if (!m_model.isForParts())
        return Tokenizer::stream();
    return std::make_unique<Stream>(*this);
}

Status SentencePieceTokenizer::encodeParts(std::span<const TextPart> parts,
    std::vector<TokenId>& ids, std::vector<std::size_t>& ends) const
{
    const JoinedParts joined(parts);
    Place place;
    return encodeCut(joined.text, joined.controls, place, ids, &ends);
}

Status SentencePieceTokenizer::decodeRun(
    const std::vector<int>& ids, bool first, std::string& out) const
{
    if (ids.empty())
        return {};
    std::string text;
    const auto status = (first ? m_processor : m_continuation).Decode(ids, &text);
    if (!status.ok())
        return Status::error(ErrorKind::Internal,
            std::string("SentencePiece cannot decode: ") + status.error_message());
    out += text;
    return {};
}

Result<std::string> SentencePieceTokenizer::decode(std::span<const TokenId> ids) const
{
    std::string out;
    std::vector<int> run;
    bool first = true;
    for (const TokenId id : ids) {
        if (id >= 0 && id < m_processor.GetPieceSize()) {
            run.push_back(id);
            continue;
        }
        if (id < 0 || id >= m_vocabulary)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("token id {} is outside the vocabulary of {}", id, m_vocabulary));
        const auto added = m_added.find(id);
        if (added == m_added.end() || added->second.special)
            continue;
        MR_TRY(decodeRun(run, first, out));
        run.clear();
        first = false;
        out += added->second.text;
    }
    MR_TRY(decodeRun(run, first, out));
    return out;
}

std::string SentencePieceTokenizer::piece(TokenId id) const
{
    if (id >= 0 && id < m_processor.GetPieceSize())
        return m_processor.IdToPiece(id);
    const auto added = m_added.find(id);
    return added == m_added.end() ? fmt::format("<id {}>", id) : added->second.text;
}

} // namespace

Result<std::unique_ptr<Tokenizer>> openSentencePiece(const fs::path& file)
{
    MR_ASSIGN(std::string bytes, readWholeFile(file, kMaxModelBytes));
    if (bytes.empty())
        return badTokenizer(file, "is empty");
    MR_ASSIGN(TokenizerHabits habits, readTokenizerHabits(file.parent_path()));
    auto tokenizer = std::make_unique<SentencePieceTokenizer>();
    MR_TRY(tokenizer->open(file, bytes, std::move(habits)));
    return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

} // namespace mr
