#include "core/checks/lost_characters.h"

#include "core/base/utf8.h"

namespace mr {
namespace {

constexpr std::int32_t kReplacement = 0xFFFD;
constexpr std::int32_t kEuro = 0x20AC; // byte 0x80 of Windows-1252

// "â€" and the third character of a dash, a quotation mark, a bullet or an ellipsis.
bool isPunctuationMisread(std::int32_t second, std::int32_t third) noexcept
{
    return second == kEuro && (third > 0xFF || (third >= 0x80 && third <= 0xBF));
}

bool isLetterMisread(std::int32_t first, std::int32_t second) noexcept
{
    constexpr std::int32_t kLeftGuillemet = 0xAB;
    constexpr std::int32_t kRightGuillemet = 0xBB;
    constexpr std::int32_t kSharpS = 0x178; // byte 0x9F of Windows-1252, of "ß"
    const bool isByte = (second >= 0x80 && second <= 0xBF) || second == kSharpS;
    return (first == 0xC2 || first == 0xC3) && isByte && second != kLeftGuillemet &&
           second != kRightGuillemet;
}

} // namespace

std::string_view lostCharacters(std::string_view text) noexcept
{
    for (std::size_t at = 0; at < text.size();) {
        const Character c = characterAt(text, at);
        at += c.bytes;
        if (c.code == kReplacement)
            return "characters were lost: U+FFFD stands in their place";
        if (c.code != 0xC2 && c.code != 0xC3 && c.code != 0xE2)
            continue;
        const Character second = characterAt(text, at);
        const Character third = characterAt(text, at + second.bytes);
        if (c.code == 0xE2 ? isPunctuationMisread(second.code, third.code)
                           : isLetterMisread(c.code, second.code))
            return "UTF-8 was read as Windows-1252";
    }
    return {};
}

} // namespace mr
