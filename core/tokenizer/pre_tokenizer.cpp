#include "core/tokenizer/pre_tokenizer.h"

#include "core/tokenizer/unicode_text.h"

#include <utility>

namespace mr {

struct PreTokenizer::Job {
    bool tracked;
    Buffer& buffer;
    WordSink& sink;
    bool frontOnly = false; // until the first stage that cuts has begun
};

PreTokenizer::Buffer::Buffer(const PreTokenizer& owner)
    : m_stages(owner.m_stages.size())
{
    for (std::size_t i = 0; i < m_stages.size(); ++i)
        if (owner.m_stages[i].regex)
            m_stages[i].matcher.emplace(*owner.m_stages[i].regex);
}

Status PreTokenizer::split(
    const TextPiece& piece, bool tracked, Buffer& buffer, WordSink& sink) const
{
    Job job{tracked, buffer, sink};
    return run(0, piece, job);
}

Status PreTokenizer::splitFront(
    const TextPiece& piece, bool tracked, Buffer& buffer, WordSink& sink) const
{
    Job job{tracked, buffer, sink, true};
    return run(0, piece, job);
}

// Behind the first stage that cuts every piece is final.
bool PreTokenizer::isForStreams() const noexcept
{
    std::size_t prefixes = 0;
    for (const Stage& stage : m_stages) {
        prefixes += stage.prefix == Prefix::Always ? 1 : 0;
        if (stage.letters != Letters::None || prefixes > 1)
            return false;
        if (stage.regex)
            return stage.regex->looksAheadOnly() && stage.behaviour != Behaviour::Contiguous &&
                   stage.behaviour != Behaviour::MergedWithPrevious;
    }
    return true;
}

std::string_view PreTokenizer::prefixOfEach() const noexcept
{
    for (const Stage& stage : m_stages) {
        if (stage.prefix == Prefix::Always)
            return stage.prefixText;
        if (stage.regex)
            break;
    }
    return {};
}

bool PreTokenizer::changesText() const noexcept
{
    for (const Stage& stage : m_stages) {
        if (!stage.replacement.empty() || stage.prefix != Prefix::Never)
            return true;
        if (stage.regex)
            break;
    }
    return false;
}

Status PreTokenizer::run(std::size_t stage, TextPiece piece, Job& job) const
{
    if (piece.text.empty())
        return {};
    if (stage == m_stages.size())
        return job.sink.word(piece);
    const Stage& what = m_stages[stage];
    if (what.letters != Letters::None)
        return run(stage + 1,
            rewrite(what.letters, piece, job.tracked, job.buffer.m_stages[stage].text), job);
    if (!what.replacement.empty() || !what.prefixText.empty())
        piece = change(what, piece, job.tracked, job.buffer.m_stages[stage].text);
    return what.regex ? cut(stage, piece, job) : run(stage + 1, piece, job);
}

TextPiece PreTokenizer::change(
    const Stage& stage, const TextPiece& piece, bool tracked, ChangedText& to)
{
    const std::string_view text = piece.text;
    const bool prefixed = stage.prefix == Prefix::Always ||
                          (stage.prefix == Prefix::First && piece.origin.at(0) == 0);
    const bool there =
        text.starts_with(stage.prefixText) || (!stage.replacement.empty() && text.starts_with(' '));
    const bool replaces = !stage.replacement.empty() && text.find(' ') != std::string_view::npos;
    if ((!prefixed || there) && !replaces)
        return piece;
    TextChanger out(piece.origin, tracked, to);
    std::size_t at = 0;
    if (prefixed && !there) { // ends with the first character, whose bytes must not end before it
        at = characterAt(text, 0).bytes;
        out.put(stage.prefixText, at);
        out.put(text.substr(0, at), at);
    }
    while (replaces) {
        const std::size_t space = text.find(' ', at);
        if (space == std::string_view::npos)
            break;
        out.copy(text, at, space);
        out.put(stage.replacement, space + 1);
        at = space + 1;
    }
    out.copy(text, at, text.size());
    return {to.text, to.origin(piece.origin)};
}

TextPiece PreTokenizer::rewrite(
    Letters letters, const TextPiece& piece, bool tracked, ChangedText& to) const
{
    TextChanger out(piece.origin, tracked, to);
    std::string one;
    for (std::size_t at = 0; at < piece.text.size();) {
        one.clear();
        if (letters == Letters::Spell) {
            appendCharacter(m_letters[static_cast<unsigned char>(piece.text[at++])], one);
        } else {
            const Character c = characterAt(piece.text, at);
            one.push_back(m_byteOf[static_cast<std::size_t>(c.code)]);
            at += c.bytes;
        }
        out.put(one, at);
    }
    return {to.text, to.origin(piece.origin)};
}

Status PreTokenizer::cut(std::size_t stage, const TextPiece& piece, Job& job) const
{
    RegexMatcher& matcher = *job.buffer.m_stages[stage].matcher;
    const bool frontOnly = std::exchange(job.frontOnly, false);
    const bool invert = m_stages[stage].invert;
    Pending pending;
    RegexMatcher::Cursor cursor;
    std::size_t at = 0;
    while (true) {
        TextRange match;
        MR_ASSIGN(bool found, frontOnly ? matcher.nextCertain(piece.text, cursor, match)
                                        : matcher.next(piece.text, cursor, match));
        if (!found)
            break;
        if (match.begin > at)
            MR_TRY(take(stage, piece, {at, match.begin}, invert, pending, job));
        MR_TRY(take(stage, piece, match, !invert, pending, job));
        at = match.end;
    }
    if (frontOnly)
        return {};
    if (at < piece.text.size())
        MR_TRY(take(stage, piece, {at, piece.text.size()}, invert, pending, job));
    return flush(stage, piece, pending, job);
}

Status PreTokenizer::take(std::size_t stage, const TextPiece& piece, TextRange range, bool match,
    Pending& pending, Job& job) const
{
    const Behaviour behaviour = m_stages[stage].behaviour;
    const bool after = pending.lastMatched;
    pending.lastMatched = match;
    if (behaviour == Behaviour::Removed && match)
        return {};
    const bool joins =
        pending.held && ((behaviour == Behaviour::MergedWithPrevious && match && !after) ||
                            (behaviour == Behaviour::MergedWithNext && !match && pending.match) ||
                            (behaviour == Behaviour::Contiguous && match == after));
    if (joins) {
        pending.range.end = range.end;
        pending.match = false;
        return {};
    }
    MR_TRY(flush(stage, piece, pending, job));
    pending.range = range;
    pending.held = true;
    pending.match = match;
    return {};
}

Status PreTokenizer::flush(
    std::size_t stage, const TextPiece& piece, Pending& pending, Job& job) const
{
    if (!pending.held)
        return {};
    pending.held = false;
    const auto [begin, end] = pending.range;
    Origin origin = piece.origin;
    if (origin.ends != nullptr && begin > 0)
        origin = {origin.ends + begin, origin.at(begin)};
    else
        origin.base += origin.ends == nullptr ? begin : 0;
    return run(stage + 1, {piece.text.substr(begin, end - begin), origin}, job);
}

} // namespace mr
