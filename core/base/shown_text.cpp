#include "core/base/shown_text.h"

#include "core/base/utf8.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace mr {
namespace {

constexpr std::size_t kShownBytes = 60;

bool isHarmful(std::int32_t code) noexcept
{
    return code < 0x20 || (code >= 0x7F && code <= 0x9F) || // control characters
           code == 0x2028 || code == 0x2029 ||              // ends of lines
           (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
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
    return "\"" + std::string(firstBytes(name, kShownBytes)) + "...\"";
}

std::string terminalText(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const Character c = characterAt(text, at);
        if (c.code < 0)
            appendEscape(out, "\\x%02x", static_cast<unsigned char>(text[at]));
        else if (c.code == '\n')
            out += "\\n";
        else if (c.code == '\t')
            out += "\\t";
        else if (isHarmful(c.code))
            appendEscape(out, c.code < 0x80 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(c.code));
        else
            out += text.substr(at, c.bytes);
        at += c.bytes;
    }
    return out;
}

} // namespace mr
