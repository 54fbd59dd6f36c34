#include "core/tokenizer/unicode_text.h"

#include <simdjson.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace mr {

Character characterAt(std::string_view text, std::size_t at) noexcept
{
    if (at >= text.size())
        return {};
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80)
        return {byte, 1};
    const std::size_t rest = std::min<std::size_t>(text.size() - at, 4);
    std::int32_t code = -1;
    const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
        static_cast<utf8proc_ssize_t>(rest), &code);
    return bytes > 0 ? Character{code, static_cast<std::size_t>(bytes)} : Character{-1, 1};
}

Character characterBefore(std::string_view text, std::size_t end) noexcept
{
    for (std::size_t bytes = 1; bytes <= 4 && bytes <= end; ++bytes) {
        const Character c = characterAt(text.substr(0, end), end - bytes);
        if (c.code >= 0)
            return c.bytes == bytes ? c : Character{-1, 1};
    }
    return end == 0 ? Character{} : Character{-1, 1};
}

std::size_t clusterBytes(std::string_view text, std::size_t at) noexcept
{
    Character last = characterAt(text, at);
    std::size_t end = at + last.bytes;
    utf8proc_int32_t state = 0;
    for (Character next = characterAt(text, end); last.code >= 0 && next.code >= 0;
         next = characterAt(text, end)) {
        if (utf8proc_grapheme_break_stateful(last.code, next.code, &state))
            break;
        end += next.bytes;
        last = next;
    }
    return end - at;
}

void appendCharacter(std::int32_t code, std::string& out)
{
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto count = utf8proc_encode_char(code, bytes.data());
    out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count));
}

bool isUtf8(std::string_view text) noexcept
{
    return simdjson::validate_utf8(text.data(), text.size());
}

std::size_t validBytes(std::string_view text, std::size_t at) noexcept
{
    std::size_t end = at;
    for (Character c = characterAt(text, end); c.code >= 0; c = characterAt(text, end))
        end += c.bytes;
    return end - at;
}

std::string_view firstBytes(std::string_view text, std::size_t most) noexcept
{
    std::size_t bytes = std::min(most, text.size());
    while (bytes > 0 && bytes < text.size() &&
           (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U)
        --bytes;
    return text.substr(0, bytes);
}

std::size_t unfinishedBytes(std::string_view text) noexcept
{
    for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        const std::size_t length = byte < 0x80   ? 1
                                   : byte < 0xC0 ? 0
                                   : byte < 0xE0 ? 2
                                   : byte < 0xF0 ? 3
                                                 : 4;
        if (length > 0)
            return length > back ? back : 0;
    }
    return 0;
}

bool isSpace(std::int32_t code) noexcept
{
    if (code < 0x80)
        return (code >= 9 && code <= 13) || code == ' ';
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
           code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool isWord(std::int32_t code) noexcept
{
    if (code < 0)
        return false;
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default: // letters in circles and squares are symbols, but alphabetic
        return (code >= 0x24B6 && code <= 0x24E9) || code == 0x200C || code == 0x200D;
    }
}

} // namespace mr
