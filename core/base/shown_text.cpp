#include "core/base/shown_text.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace mr {
namespace {

constexpr std::size_t kShownBytes = 60;

bool isContinuation(char c) noexcept
{
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

struct CodePoint {
    std::uint32_t code = 0;
    std::size_t bytes = 0; // 0: not UTF-8
};

// A longer form than needed, a surrogate and a code beyond Unicode are not UTF-8.
CodePoint codePointAt(std::string_view text, std::size_t at) noexcept
{
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80U)
        return {first, 1};
    const std::size_t bytes = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : first >= 0xC0U ? 2 : 0;
    if (bytes == 0 || bytes > text.size() - at || first > 0xF4U)
        return {};
    std::uint32_t code = first & (0x7FU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if (!isContinuation(text[at + i]))
            return {};
        code = code << 6U | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast.at(bytes) || code > 0x10FFFFU || (code >= 0xD800U && code <= 0xDFFFU))
        return {};
    return {code, bytes};
}

bool isHarmful(std::uint32_t code) noexcept
{
    return code < 0x20U || (code >= 0x7FU && code <= 0x9FU) || // control characters
           code == 0x2028U || code == 0x2029U ||               // ends of lines
           (code >= 0x202AU && code <= 0x202EU) || (code >= 0x2066U && code <= 0x2069U);
}

void appendEscape(std::string& out, const char* format, unsigned value)
{
    std::array<char, 8> escape{};
    (void)std::snprintf(escape.data(), escape.size(), format, value);
    out += escape.data();
}

} // namespace

std::string shownName(std::string_view name)
{
    if (name.size() <= kShownBytes)
        return "\"" + std::string(name) + "\"";
    std::size_t bytes = kShownBytes;
    while (bytes > 0 && isContinuation(name[bytes]))
        --bytes;
    return "\"" + std::string(name.substr(0, bytes)) + "...\"";
}

std::string terminalText(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = codePointAt(text, at);
        if (point.bytes == 0)
            appendEscape(out, "\\x%02x", static_cast<unsigned char>(text[at]));
        else if (point.code == '\n')
            out += "\\n";
        else if (point.code == '\t')
            out += "\\t";
        else if (isHarmful(point.code))
            appendEscape(out, point.code < 0x80U ? "\\x%02x" : "\\u%04x", point.code);
        else
            out += text.substr(at, point.bytes);
        at += point.bytes == 0 ? 1 : point.bytes;
    }
    return out;
}

} // namespace mr
