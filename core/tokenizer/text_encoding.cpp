#include "core/tokenizer/text_encoding.h"

#include "core/tokenizer/unicode_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mr {
namespace {

TextPiece partOf(const TextPiece& piece, std::size_t begin, std::size_t end)
{
    Origin origin = piece.origin;
    origin.base = piece.origin.at(begin);
    if (origin.ends != nullptr)
        origin.ends += begin;
    return {piece.text.substr(begin, end - begin), origin};
}

} // namespace

TextEncoding::TextEncoding(const EncodingStages& stages, EncodeScratch& scratch,
    const ControlRanges& controls, std::vector<TokenId>& ids, std::vector<std::size_t>* ends)
    : m_stages(stages)
    , m_scratch(scratch)
    , m_controls(controls)
    , m_ids(ids)
    , m_ends(ends)
{
}

template <typename Between>
Status TextEncoding::cut(const AddedTokens& tokens, const TextPiece& piece, const Between& between)
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

Status TextEncoding::text(std::string_view text)
{
    return cut(
        m_stages.rawTokens, {text, {}}, [this](const TextPiece& piece) { return section(piece); });
}

Status TextEncoding::from(std::string_view text, std::size_t before)
{
    m_text = text;
    m_before = before;
    m_isStream = true;
    return cut(m_stages.rawTokens, {text, {nullptr, before}},
        [this](const TextPiece& piece) { return section(piece); });
}

// Text behind a place may put it within an added token.
bool TextEncoding::areApartAt(std::string_view text, std::size_t at) const
{
    return m_stages.rawTokens.areApartAt(text, at) &&
           m_stages.normalizedTokens.areApartAt(text, at);
}

// Cuts off the beginning of an added token, since a text ends in front of one.
std::string_view TextEncoding::certain(std::string_view text) const
{
    for (std::size_t end = text.size(); end > 0;) {
        end -= characterBefore(text, end).bytes;
        if (m_stages.normalizer.isCertainBefore(text, end, m_scratch.normalized) &&
            areApartAt(text, end))
            return text.substr(0, end);
    }
    return {};
}

Result<TextBorder> TextEncoding::front(std::string_view text, std::size_t before)
{
    m_isFront = true;
    text = certain(text);
    MR_TRY(from(text, before));
    const auto stands = [&](const TextBorder& border) { return areApartAt(text, border.at); };
    const auto found = std::find_if(m_borders.rbegin(), m_borders.rend(), stands);
    return found == m_borders.rend() ? TextBorder{} : *found;
}

Status TextEncoding::rest(std::string_view text, std::size_t before)
{
    return from(text, before);
}

// Bytes that are no UTF-8 are words of their own: nothing but the model can look at them.
Status TextEncoding::section(const TextPiece& piece)
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

Status TextEncoding::validSection(TextPiece piece)
{
    // Control tokens are looked for by where they come from, and so are borders.
    const bool tracked =
        m_ends != nullptr || !m_controls.empty() ||
        (m_isFront && (!m_stages.normalizer.empty() || m_stages.preTokenizer.changesText()));
    const bool first = piece.text.data() == m_text.data();
    const bool last =
        m_isFront && piece.text.data() + piece.text.size() == m_text.data() + m_text.size();
    m_beginsSection = !(m_isStream && first && m_before > 0);
    MR_TRY(m_stages.normalizer.apply(
        piece.text, piece.origin, tracked, m_scratch.normalized, !m_beginsSection));
    const char* const end = piece.text.data() + piece.text.size();
    return cut(m_stages.normalizedTokens, piece, [&](const TextPiece& part) {
        m_beginsSection |= part.text.data() != piece.text.data();
        return last && part.text.data() + part.text.size() == end
                   ? m_stages.preTokenizer.splitFront(part, tracked, m_scratch.pieces, *this)
                   : m_stages.preTokenizer.split(part, tracked, m_scratch.pieces, *this);
    });
}

Status TextEncoding::word(const TextPiece& piece)
{
    const WordModel& model = *m_stages.model;
    std::span<const WordModel::Symbol> symbols;
    for (std::size_t at = 0; at < piece.text.size();) {
        if (m_isFront)
            noteBorder(piece, at);
        const std::size_t bytes = model.wordBytes(piece.text.substr(at));
        if (bytes > model.maxWordBytes())
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format(
                    "a word of {} bytes cannot be encoded; split the text into documents (--split)",
                    bytes));
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

// In front of a word that is not the first of a section, which may be put together otherwise. A
// character of the text that became several lies on one side only.
void TextEncoding::noteBorder(const TextPiece& piece, std::size_t at)
{
    constexpr std::size_t kBordersKept = 1024;
    const std::size_t begin = piece.origin.at(at) - m_before;
    if (std::exchange(m_beginsSection, false) || begin == 0 || begin >= m_text.size() ||
        piece.origin.at(at + 1) - m_before <= begin)
        return;
    if (!m_stages.normalizer.empty() &&
        !m_stages.normalizer.beginsAnew(m_text, begin, m_scratch.normalized))
        return;
    if (!piece.text.substr(at).starts_with(m_stages.preTokenizer.prefixOfEach()))
        return;
    if (m_borders.size() == 2 * kBordersKept)
        m_borders.erase(m_borders.begin(), m_borders.begin() + kBordersKept);
    m_borders.push_back({begin, m_ids.size()});
}

namespace {

class StagedStream final : public TextStream
{
public:
    explicit StagedStream(const EncodingStages& stages)
        : m_stages(stages)
        , m_scratch(stages)
    {
    }

    Result<std::size_t> encode(
        std::string_view text, bool isEnd, std::vector<TokenId>& out) override
    {
        const ControlRanges none;
        TextEncoding encoding(m_stages, m_scratch, none, out, nullptr);
        if (isEnd) {
            MR_TRY(encoding.rest(text, m_before));
            return text.size();
        }
        if (text.size() < m_wait) // where the last time found no border
            return std::size_t{0};
        const std::size_t before = out.size();
        MR_ASSIGN(TextBorder border, encoding.front(text, m_before));
        const bool found = border.at > 0;
        out.resize(found ? border.ids : before);
        m_wait = found ? 0 : 2 * text.size();
        m_before += border.at;
        return border.at;
    }

private:
    const EncodingStages& m_stages;
    EncodeScratch m_scratch;
    std::size_t m_before = 0; // bytes taken
    std::size_t m_wait = 0;
};

} // namespace

std::unique_ptr<TextStream> makeTextStream(const EncodingStages& stages)
{
    const bool apart = stages.normalizer.empty() || stages.normalizedTokens.empty();
    if (!apart || !stages.normalizer.isForStreams() || !stages.preTokenizer.isForStreams())
        return nullptr;
    return std::make_unique<StagedStream>(stages);
}

} // namespace mr
