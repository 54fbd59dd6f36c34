#include "core/tokenizer/unicode_text.h"

#include <simdjson.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace mr {

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

bool isUtf8(std::string_view text) noexcept
{
    return simdjson::validate_utf8(text.data(), text.size());
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
