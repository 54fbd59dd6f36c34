#include "core/base/utf8.h"

#include <algorithm>
#include <array>

namespace mr {
namespace {

bool isContinuation(char c) noexcept
{
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

} // namespace

std::size_t characterBytes(unsigned char first) noexcept
{
    if (first < 0x80)
        return 1;
    if (first < 0xC0 || first > 0xF4)
        return 0;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

Character characterAt(std::string_view text, std::size_t at) noexcept
{
    if (at >= text.size())
        return {};
    constexpr Character kBad{-1, 1};
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80)
        return {first, 1};
    const std::size_t bytes = characterBytes(first);
    if (bytes == 0 || bytes > text.size() - at)
        return kBad;
    std::uint32_t code = first & (0x7FU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if (!isContinuation(text[at + i]))
            return kBad;
        code = code << 6U | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast.at(bytes) || code > 0x10FFFFU || (code >= 0xD800U && code <= 0xDFFFU))
        return kBad;
    return {static_cast<std::int32_t>(code), bytes};
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

void appendCharacter(std::int32_t code, std::string& out)
{
    const auto c = static_cast<std::uint32_t>(code);
    const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (c < 0x80) {
        put(c);
        return;
    }
    if (c < 0x800) {
        put(0xC0U | c >> 6U);
    } else {
        if (c < 0x10000) {
            put(0xE0U | c >> 12U);
        } else {
            put(0xF0U | c >> 18U);
            put(0x80U | (c >> 12U & 0x3FU));
        }
        put(0x80U | (c >> 6U & 0x3FU));
    }
    put(0x80U | (c & 0x3FU));
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
    while (bytes > 0 && bytes < text.size() && isContinuation(text[bytes]))
        --bytes;
    return text.substr(0, bytes);
}

std::size_t unfinishedBytes(std::string_view text) noexcept
{
    for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
        const std::size_t length =
            characterBytes(static_cast<unsigned char>(text[text.size() - back]));
        if (length > 0)
            return length > back ? back : 0;
    }
    return 0;
}

} // namespace mr
