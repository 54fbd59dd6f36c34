#include "core/tokenizer/text_regex.h"
#include "core/tokenizer/unicode_text.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

namespace mr::fuzz {
namespace {

constexpr int kMostMatches = 2000;

void matchAll(const TextRegex& regex, std::string_view text)
{
    RegexMatcher matcher(regex);
    RegexMatcher::Cursor at;
    std::size_t end = 0;
    for (int i = 0; i < kMostMatches; ++i) {
        TextRange range;
        Result<bool> found = matcher.next(text, at, range);
        if (!check(found) || !found.value())
            return;
        require(end <= range.begin && range.begin <= range.end && range.end <= text.size(),
            "a match outside the text");
        require(i == 0 || range.end > end || range.begin > end, "a match that does not go on");
        end = range.end;
    }
}

} // namespace

void regex(std::string_view bytes)
{
    const auto parts = cutInput(bytes, 2);
    Result<TextRegex> compiled = TextRegex::compile(parts[0]);
    if (!check(compiled))
        return;
    matchAll(compiled.value(), kTexts[0]);
    matchAll(compiled.value(), kTexts[1]);
    matchAll(compiled.value(), kTexts[3]);
    if (isUtf8(parts[1]))
        matchAll(compiled.value(), parts[1]);
    Result<TextRegex> literal = TextRegex::compile(escapeRegex(kTexts[0]));
    require(literal.ok(), "a text that cannot be an expression");
}

} // namespace mr::fuzz
