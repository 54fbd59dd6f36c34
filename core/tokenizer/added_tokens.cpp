#include "core/tokenizer/added_tokens.h"

#include "core/tokenizer/unicode_text.h"

#include <algorithm>
#include <utility>

namespace mr {

void ControlRanges::add(std::size_t begin, std::size_t end)
{
    if (begin == end)
        return;
    if (!m_ranges.empty() && m_ranges.back().end == begin)
        m_ranges.back().end = end;
    else
        m_ranges.push_back({begin, end});
}

std::vector<ControlRanges::Range>::const_iterator ControlRanges::after(
    std::size_t at) const noexcept
{
    return std::upper_bound(m_ranges.begin(), m_ranges.end(), at,
        [](std::size_t value, const Range& range) { return value < range.end; });
}

bool ControlRanges::cover(std::size_t begin, std::size_t end) const noexcept
{
    const auto range = after(begin);
    return range != m_ranges.end() && range->begin <= begin && end <= range->end;
}

bool ControlRanges::touch(std::size_t begin, std::size_t end) const noexcept
{
    const auto range = after(begin);
    return range != m_ranges.end() && range->begin < end;
}

JoinedParts::JoinedParts(std::span<const TextPart> parts)
{
    for (const TextPart& part : parts) {
        if (part.controls)
            controls.add(text.size(), text.size() + part.text.size());
        text += part.text;
    }
}

void AddedTokens::add(AddedToken token, std::string_view spelling)
{
    if (spelling.empty())
        return;
    m_begins[static_cast<unsigned char>(spelling.front())] = true;
    std::uint32_t node = 0;
    for (const char c : spelling) {
        const std::uint64_t step = std::uint64_t{node} << 8 | static_cast<unsigned char>(c);
        const auto [found, isNew] =
            m_steps.try_emplace(step, static_cast<std::uint32_t>(m_tokenOf.size()));
        if (isNew)
            m_tokenOf.push_back(-1);
        node = found->second;
    }
    if (m_tokenOf[node] >= 0)
        return;
    m_tokenOf[node] = static_cast<std::int32_t>(m_tokens.size());
    m_longest = std::max(m_longest, spelling.size());
    m_haveNeighbours |= token.lstrip || token.rstrip || token.singleWord;
    m_tokens.push_back(std::move(token));
}

bool AddedTokens::areApartAt(std::string_view text, std::size_t at) const noexcept
{
    if (m_haveNeighbours && isSpace(characterAt(text, at).code))
        return false;
    const std::size_t from = at - std::min(at, m_longest);
    for (std::size_t begin = from; begin < at + (m_haveNeighbours ? 1 : 0); ++begin) {
        std::uint32_t node = 0;
        std::size_t end = begin;
        for (; end < text.size(); ++end) {
            const auto next =
                m_steps.find(std::uint64_t{node} << 8 | static_cast<unsigned char>(text[end]));
            if (next == m_steps.end())
                break;
            node = next->second;
            const bool touches = m_haveNeighbours && end + 1 >= at;
            if (m_tokenOf[node] >= 0 && (end + 1 > at || touches))
                return false;
        }
        if (end == text.size() && end > begin)
            return false; // may become a spelling
    }
    return true;
}

AddedTokens::Candidates AddedTokens::candidatesAt(std::string_view text, std::size_t begin,
    const ControlRanges& controls, const Origin& origin) const
{
    Candidates out;
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
        const auto next =
            m_steps.find(std::uint64_t{node} << 8 | static_cast<unsigned char>(text[at]));
        if (next == m_steps.end())
            break;
        node = next->second;
        if (m_tokenOf[node] < 0)
            continue;
        const AddedToken& token = m_tokens[static_cast<std::size_t>(m_tokenOf[node])];
        out.longest = {at + 1, &token};
        if (!token.special || controls.cover(origin.at(begin), origin.at(at + 1)))
            out.allowed = out.longest;
    }
    return out;
}

bool AddedTokens::standsAlone(std::string_view text, std::size_t begin, std::size_t end)
{
    return !isWord(characterBefore(text, begin).code) && !isWord(characterAt(text, end).code);
}

void AddedTokens::strip(std::string_view text, std::size_t from, Match& match)
{
    if (match.token->lstrip)
        for (Character c = characterBefore(text, match.begin);
             c.bytes > 0 && match.begin - c.bytes >= from && isSpace(c.code);
             c = characterBefore(text, match.begin))
            match.begin -= c.bytes;
    if (match.token->rstrip)
        for (Character c = characterAt(text, match.end); c.bytes > 0 && isSpace(c.code);
             c = characterAt(text, match.end))
            match.end += c.bytes;
}

bool AddedTokens::find(std::string_view text, const Match& last, const ControlRanges& controls,
    const Origin& origin, Match& out) const
{
    if (m_tokens.empty())
        return false;
    for (std::size_t at = last.next; at < text.size();) {
        if (!m_begins[static_cast<unsigned char>(text[at])]) {
            ++at;
            continue;
        }
        const Candidates found = candidatesAt(text, at, controls, origin);
        const std::size_t longestEnd = found.longest.end;
        // A control token that lies in a person's text altogether is passed over, with all that
        // is in it; one that a person's text only reaches into must not hide a shorter one.
        const bool passedOver = found.longest.token != found.allowed.token &&
                                !controls.touch(origin.at(at), origin.at(longestEnd));
        const AddedToken* token = passedOver ? nullptr : found.allowed.token;
        if (token != nullptr && (!token->singleWord || standsAlone(text, at, found.allowed.end))) {
            out = {at, found.allowed.end, found.allowed.end, token};
            strip(text, last.end, out);
            return true;
        }
        at = passedOver ? longestEnd : token != nullptr ? found.allowed.end : at + 1;
    }
    return false;
}

} // namespace mr
