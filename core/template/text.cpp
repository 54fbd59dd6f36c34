#include "core/template/text.h"

#include "core/base/utf8.h"

#include <algorithm>

namespace mr::tpl {

std::uint8_t Text::anyFlags() const noexcept
{
    std::uint8_t out = 0;
    for (const Run& run : m_runs)
        out = static_cast<std::uint8_t>(out | run.flags);
    return out;
}

void Text::append(std::string_view bytes, std::uint8_t flags)
{
    if (bytes.empty())
        return;
    m_bytes += bytes;
    if (!m_runs.empty() && m_runs.back().flags == flags)
        m_runs.back().end = m_bytes.size();
    else
        m_runs.push_back({m_bytes.size(), flags});
}

void Text::append(const Text& other, std::uint8_t added)
{
    append(other, 0, other.byteCount(), added);
}

void Text::append(const Text& other, std::size_t begin, std::size_t end, std::uint8_t added)
{
    auto run = std::upper_bound(other.m_runs.begin(), other.m_runs.end(), begin,
        [](std::size_t at, const Run& r) { return at < r.end; });
    while (begin < end && run != other.m_runs.end()) {
        const std::size_t stop = std::min(run->end, end);
        append(std::string_view(other.m_bytes).substr(begin, stop - begin),
            static_cast<std::uint8_t>(run->flags | added));
        begin = stop;
        ++run;
    }
}

Text Text::slice(std::size_t begin, std::size_t end) const
{
    Text out;
    out.append(*this, begin, end);
    return out;
}

std::vector<std::size_t> Text::characters() const
{
    std::vector<std::size_t> out;
    for (std::size_t at = 0; at < m_bytes.size();) {
        out.push_back(at);
        takeCharacter(m_bytes, at);
    }
    out.push_back(m_bytes.size());
    return out;
}

std::size_t Text::characterCount() const noexcept
{
    std::size_t count = 0;
    for (std::size_t at = 0; at < m_bytes.size(); ++count)
        takeCharacter(m_bytes, at);
    return count;
}

char32_t takeCharacter(std::string_view bytes, std::size_t& at) noexcept
{
    const Character c = characterAt(bytes, at);
    const auto lead = static_cast<unsigned char>(bytes[at]);
    at += c.bytes;
    return c.code < 0 ? lead : static_cast<char32_t>(c.code);
}

bool isSpace(char32_t c) noexcept
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

Range stripped(std::string_view bytes, bool left, bool right, const std::string* set)
{
    std::u32string characters;
    for (std::size_t at = 0; set != nullptr && at < set->size();)
        characters.push_back(takeCharacter(*set, at));
    const auto drops = [&](char32_t c) {
        return set == nullptr ? isSpace(c) : characters.find(c) != std::u32string::npos;
    };
    Range out{0, bytes.size()};
    while (left && out.begin < out.end) {
        std::size_t next = out.begin;
        if (!drops(takeCharacter(bytes, next)))
            break;
        out.begin = next;
    }
    while (right && out.begin < out.end) {
        std::size_t last = out.end - 1;
        while (last > out.begin && (static_cast<unsigned char>(bytes[last]) & 0xC0U) == 0x80)
            --last;
        std::size_t next = last;
        if (!drops(takeCharacter(bytes, next)))
            break;
        out.end = last;
    }
    return out;
}

} // namespace mr::tpl
