// TextRegex: the regular expressions of tokenizer.json, on PCRE2 with its compiler.
//
// The files are written for Oniguruma. Syntax that both read alike is passed on, syntax that
// differs is spelled out (\s, \w, scripts), and the rest is refused by name: a pattern that means
// something else here would train on other tokens than the model knows.
//
// Threads    TextRegex: any number at once. RegexMatcher: one thread at a time.
// Ownership  A matcher borrows its expression.
// Errors     compile(): InvalidArgument with the pattern. next(): InvalidArgument when the
//            expression needs too many steps on this text, so none hangs.
// Units      Bytes.

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;
struct pcre2_real_jit_stack_8;

namespace mr {

struct TextRange {
    std::size_t begin = 0; // half-open
    std::size_t end = 0;
};

// Most bytes that the replacements of a tokenizer.json may make of a text of `bytes`. Published
// ones write three bytes for a space; a chain of replacements that feed each other has no end.
constexpr std::size_t mostReplacedBytes(std::size_t bytes) noexcept
{
    return 64 * bytes + (std::size_t{64} << 10);
}
Status replacedTooLong(std::size_t bytes, std::size_t most);

// Translates an expression to PCRE2's syntax.
Result<std::string> translateRegex(std::string_view pattern);
// Ranges of a class ("L", "Nd", "Han") that PCRE2's tables lack; perhaps none.
std::string_view laterCharacters(std::string_view className) noexcept;
// An expression that matches exactly this text.
std::string escapeRegex(std::string_view literal);

class TextRegex
{
public:
    static Result<TextRegex> compile(std::string_view pattern);

    // Whether a search that begins anywhere finds the same matches as one from the front of the
    // text finds from there on: nothing looks back, and no match is empty.
    bool looksAheadOnly() const noexcept;

private:
    friend class RegexMatcher;
    struct FreeCode {
        void operator()(pcre2_real_code_8* code) const noexcept;
    };
    std::unique_ptr<pcre2_real_code_8, FreeCode> m_code;
    std::string m_pattern;
};

class RegexMatcher
{
public:
    explicit RegexMatcher(const TextRegex& regex);

    // Where a search goes on.
    struct Cursor {
        std::size_t from = 0;
        std::size_t lastEnd = SIZE_MAX; // end of the match before; none yet
    };
    // The next match from `at` on, or false. It may be empty, as that of "(?=[A-Z])", but not right
    // behind the one before. `text` is UTF-8.
    Result<bool> next(std::string_view text, Cursor& at, TextRange& out);
    // The next match if no text behind `text` could change it; else false.
    Result<bool> nextCertain(std::string_view text, Cursor& at, TextRange& out);

private:
    Result<bool> search(
        std::string_view text, std::size_t from, std::uint32_t options, TextRange& out);

    struct Free {
        void operator()(pcre2_real_match_context_8* context) const noexcept;
        void operator()(pcre2_real_match_data_8* data) const noexcept;
        void operator()(pcre2_real_jit_stack_8* stack) const noexcept;
    };
    const TextRegex* m_regex;
    std::unique_ptr<pcre2_real_jit_stack_8, Free> m_stack;
    std::unique_ptr<pcre2_real_match_context_8, Free> m_context;
    std::unique_ptr<pcre2_real_match_data_8, Free> m_data;
};

} // namespace mr
