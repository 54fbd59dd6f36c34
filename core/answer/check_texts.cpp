#include "core/answer/check_texts.h"

#include <array>
#include <string_view>

namespace mr {
namespace {

constexpr std::array<std::string_view, 20> kParts = {"Hello, world!", "  two spaces", "tab\there",
    "line\nbreak", "\n\n\nthree lines", "don't you'll WE'VE", "3.14159 and 2024", "1,000,000",
    "naïve café", "Straße und Übergröße", "Привет, мир", "日本語のテキスト", "한국어 문장", "مرحبا",
    "हिन्दी", "👩‍👩‍👧 family 🚀", "for (int i = 0; i < n; ++i) {",
    "https://example.org/a?b=c&d=%20", "snake_case camelCase ALLCAPS",
    "x = {\"key\": [1, 2.5e-3, null]}"};

constexpr std::array<std::string_view, 10> kJoints = {
    " ", "", "\n", "  ", ". ", "\t", "-", ", ", "\r\n", " … "};

} // namespace

std::vector<std::string> checkTexts()
{
    std::vector<std::string> texts;
    for (std::size_t part = 0; part < kParts.size(); ++part)
        for (std::size_t joint = 0; joint < kJoints.size(); ++joint) {
            const std::size_t other = (part + 3 * joint + 1) % kParts.size();
            texts.push_back(std::string(kParts[part]).append(kJoints[joint]).append(kParts[other]));
        }
    return texts;
}

} // namespace mr
