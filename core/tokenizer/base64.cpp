#include "core/tokenizer/base64.h"

#include <array>
#include <cstdint>

namespace mr {

bool decodeBase64(std::string_view text, std::string& out)
{
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (text.size() % 4 != 0)
        return false;
    for (int padding = 0; padding < 2 && text.ends_with('='); ++padding)
        text.remove_suffix(1);
    std::array<std::uint8_t, 256> valueOf{};
    valueOf.fill(64);
    for (std::size_t i = 0; i < kDigits.size(); ++i)
        valueOf[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (const char c : text) {
        const std::uint8_t value = valueOf[static_cast<unsigned char>(c)];
        if (value == 64)
            return false;
        bits = bits << 6 | value;
        count += 6;
        if (count < 8)
            continue;
        count -= 8;
        out.push_back(static_cast<char>(bits >> count & 0xFFU));
    }
    return true;
}

} // namespace mr
