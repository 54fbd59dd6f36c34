#include "core/tokenizer/text_regex.h"

#include "core/tokenizer/unicode_text.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>

namespace mr {
namespace {

constexpr std::size_t kMaxPatternBytes = 64 << 10;
// Steps from one place: going back over white space takes some per byte, a harmful expression grows
// with a power of them.
constexpr std::size_t kMatchSteps = 1'000'000;
constexpr std::size_t kMatchStepsPerByte = 16;
constexpr std::size_t kStackBytes = 32 << 10;
constexpr std::size_t kMaxStackBytes = 8 << 20;

std::string pcreMessage(int code)
{
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(code, text.data(), text.size());
    return reinterpret_cast<const char*>(text.data());
}

template <typename T>
T* orThrow(T* made)
{
    if (made == nullptr)
        throw std::bad_alloc();
    return made;
}

// An expression in a message.
std::string inQuotes(const std::string& pattern)
{
    constexpr std::size_t kShownBytes = 200;
    const bool whole = pattern.size() <= kShownBytes;
    return "\"" + (whole ? pattern : pattern.substr(0, kShownBytes) + "...") + "\"";
}

} // namespace

Status replacedTooLong(std::size_t bytes, std::size_t most)
{
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("replacements make {} bytes of this text, more than the {} that are allowed; "
                    "they are not those of a published model",
            bytes, most));
}

void TextRegex::FreeCode::operator()(pcre2_code* code) const noexcept
{
    pcre2_code_free(code);
}

Result<TextRegex> TextRegex::compile(std::string_view pattern)
{
    if (pattern.size() > kMaxPatternBytes)
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("an expression of {} bytes", pattern.size()));
    MR_ASSIGN(std::string ours, translateRegex(pattern));
    int code = 0;
    PCRE2_SIZE at = 0;
    TextRegex out;
    out.m_pattern = pattern;
    out.m_code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(ours.data()), ours.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr));
    if (!out.m_code)
        return Status::error(ErrorKind::InvalidArgument,
            "the expression " + inQuotes(out.m_pattern) + " cannot be used: " + pcreMessage(code));
    // Without it: the same, slower.
    pcre2_jit_compile(out.m_code.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    return out;
}

// An anchor is no look-behind to the library, so any expression that may have one is excluded; a
// caret within a class stands behind its bracket.
bool TextRegex::looksAheadOnly() const noexcept
{
    std::uint32_t behind = 0;
    std::uint32_t empty = 0;
    pcre2_pattern_info(m_code.get(), PCRE2_INFO_MAXLOOKBEHIND, &behind);
    pcre2_pattern_info(m_code.get(), PCRE2_INFO_MATCHEMPTY, &empty);
    for (std::size_t at = 0; at < m_pattern.size(); ++at) {
        const char before = at > 0 ? m_pattern[at - 1] : '\0';
        const bool caret = m_pattern[at] == '^' && before != '[';
        const bool anchor = before == '\\' &&
                            (m_pattern[at] == 'A' || m_pattern[at] == 'G' || m_pattern[at] == 'K');
        if (caret || anchor)
            return false;
    }
    return behind == 0 && empty == 0;
}

void RegexMatcher::Free::operator()(pcre2_match_context* context) const noexcept
{
    pcre2_match_context_free(context);
}

void RegexMatcher::Free::operator()(pcre2_match_data* data) const noexcept
{
    pcre2_match_data_free(data);
}

void RegexMatcher::Free::operator()(pcre2_jit_stack* stack) const noexcept
{
    pcre2_jit_stack_free(stack);
}

RegexMatcher::RegexMatcher(const TextRegex& regex)
    : m_regex(&regex)
    , m_stack(orThrow(pcre2_jit_stack_create(kStackBytes, kMaxStackBytes, nullptr)))
    , m_context(orThrow(pcre2_match_context_create(nullptr)))
    , m_data(orThrow(pcre2_match_data_create(1, nullptr)))
{
    pcre2_jit_stack_assign(m_context.get(), nullptr, m_stack.get());
}

Result<bool> RegexMatcher::search(
    std::string_view text, std::size_t from, std::uint32_t options, TextRange& out)
{
    const std::size_t steps = kMatchSteps + kMatchStepsPerByte * (text.size() - from);
    pcre2_set_match_limit(
        m_context.get(), static_cast<std::uint32_t>(std::min<std::size_t>(steps, UINT32_MAX)));
    const int found = pcre2_match(m_regex->m_code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
        text.size(), from, PCRE2_NO_UTF_CHECK | options, m_data.get(), m_context.get());
    if (found == PCRE2_ERROR_NOMATCH || found == PCRE2_ERROR_PARTIAL)
        return false;
    if (found < 0)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the expression {} gives up on this text at byte {}: {}",
                inQuotes(m_regex->m_pattern), from, pcreMessage(found)));
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(m_data.get());
    out = {range[0], range[1]};
    return true;
}

Result<bool> RegexMatcher::next(std::string_view text, Cursor& at, TextRange& out)
{
    while (at.from <= text.size()) {
        Result<bool> found = search(text, at.from, 0, out);
        if (!found.ok() || !found.value())
            return found;
        if (out.begin == out.end && out.end == at.lastEnd) {
            at.from += std::max<std::size_t>(characterAt(text, at.from).bytes, 1);
            continue;
        }
        at = {out.end, out.end};
        return true;
    }
    return false;
}

Result<bool> RegexMatcher::nextCertain(std::string_view text, Cursor& at, TextRange& out)
{
    Result<bool> found = search(text, at.from, PCRE2_PARTIAL_HARD, out);
    if (found.ok() && found.value())
        at = {out.end, out.end};
    return found;
}

} // namespace mr
