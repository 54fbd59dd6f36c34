// Conversions of a chat template's texts; every character keeps where it came from.

#include "core/base/utf8.h"
#include "core/template/evaluator.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace mr::tpl {
namespace {

bool isLetter(char32_t c) noexcept
{
    const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
           category == UTF8PROC_CATEGORY_LT;
}

char32_t cased(char32_t c, bool up) noexcept
{
    const auto code = static_cast<utf8proc_int32_t>(c);
    return static_cast<char32_t>(up ? utf8proc_toupper(code) : utf8proc_tolower(code));
}

bool isLineEnd(char32_t c) noexcept
{
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// Whether the character behind `before` is written large.
bool goesUp(Letters how, bool first, char32_t before) noexcept
{
    switch (how) {
    case Letters::Upper:
        return true;
    case Letters::Title:
        return !isLetter(before);
    case Letters::Capital:
        return first;
    case Letters::WordTitle: // the filter, which begins words behind these alone
        return first || isSpace(before) ||
               (before < 128 && before != 0 &&
                   std::string_view("-({[<").find(static_cast<char>(before)) !=
                       std::string_view::npos);
    default:
        return false;
    }
}

} // namespace

Text changeCase(const Text& text, Letters how)
{
    Text out;
    char32_t before = 0;
    std::size_t at = 0;
    for (const Text::Run& run : text.runs()) {
        std::string changed;
        while (at < run.end) {
            const bool first = at == 0;
            const char32_t c = takeCharacter(text.bytes(), at);
            const bool up = goesUp(how, first, before);
            if (up && c == 0xDF) // the one common letter with a capital of two letters
                changed += how == Letters::Upper || how == Letters::WordTitle ? "SS" : "Ss";
            else
                appendCharacter(static_cast<std::int32_t>(cased(c, up)), changed);
            before = c;
        }
        out.append(changed, run.flags);
    }
    return out;
}

Text replaced(const Text& text, const std::string& what, const Text& with, std::int64_t most)
{
    Text out;
    const std::string& bytes = text.bytes();
    std::size_t at = 0;
    std::int64_t done = 0;
    while (most < 0 || done < most) {
        std::size_t found = bytes.find(what, at);
        if (found == std::string::npos || (what.empty() && found > bytes.size()))
            break;
        out.append(text, at, found);
        out.append(with);
        at = found + what.size();
        ++done;
        if (!what.empty())
            continue;
        if (at >= bytes.size()) // an empty text stands between all characters
            break;
        std::size_t next = at;
        takeCharacter(bytes, next);
        out.append(text, at, next);
        at = next;
    }
    out.append(text, at, bytes.size());
    return out;
}

std::vector<Text> lines(const Text& text, bool keepEnds)
{
    std::vector<Text> out;
    const std::string& bytes = text.bytes();
    std::size_t begin = 0;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t end = at;
        const char32_t c = takeCharacter(bytes, at);
        if (!isLineEnd(c))
            continue;
        if (c == '\r' && at < bytes.size() && bytes[at] == '\n')
            ++at;
        out.push_back(text.slice(begin, keepEnds ? at : end));
        begin = at;
    }
    if (begin < bytes.size())
        out.push_back(text.slice(begin, bytes.size()));
    return out;
}

Text escaped(const Text& text)
{
    static constexpr std::string_view kSigns = "&<>'\"";
    static constexpr std::array<std::string_view, 5> kWords{
        "&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    Text out;
    const std::string& bytes = text.bytes();
    std::size_t at = 0;
    for (const Text::Run& run : text.runs())
        while (at < run.end) {
            const std::size_t sign = std::min(bytes.find_first_of(kSigns, at), run.end);
            out.append(std::string_view(bytes).substr(at, sign - at), run.flags);
            at = sign;
            if (at < run.end)
                out.append(kWords[kSigns.find(bytes[at++])], run.flags);
        }
    return out;
}

Text escapedText(const Value& value)
{
    return value.isMarkup() ? value.text() : escaped(asText(value));
}

Text join(const std::vector<Text>& parts, const Text& between)
{
    Text out;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0)
            out.append(between);
        out.append(parts[i]);
    }
    return out;
}

} // namespace mr::tpl
