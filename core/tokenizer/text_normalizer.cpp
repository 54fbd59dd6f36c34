#include "core/tokenizer/text_normalizer.h"

#include "core/tokenizer/unicode_age.h"
#include "core/tokenizer/unicode_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace mr {
namespace {

constexpr std::int32_t kDotAbove = 0x307;
constexpr std::int32_t kCapitalDottedI = 0x130; // its small form has two characters

utf8proc_option_t optionsOf(int options)
{
    return static_cast<utf8proc_option_t>(options);
}

// Appends the full decomposition of one character.
void decompose(std::int32_t code, int options, std::vector<std::int32_t>& out)
{
    if (isLaterForm(code))
        return out.push_back(code);
    std::array<std::int32_t, 64> codes{}; // the longest there is has 18
    int last = 0;
    const auto count =
        utf8proc_decompose_char(code, codes.data(), codes.size(), optionsOf(options), &last);
    if (count > 0 && static_cast<std::size_t>(count) <= codes.size())
        out.insert(out.end(), codes.begin(), codes.begin() + count);
    else
        out.push_back(code);
}

std::uint32_t combiningClass(std::int32_t code)
{
    return isLaterMark(code)
               ? 0
               : static_cast<std::uint32_t>(utf8proc_get_property(code)->combining_class);
}

// Marks in the order of their classes; equal ones keep theirs.
void order(std::vector<std::int32_t>& codes)
{
    const auto isMark = [](std::int32_t code) { return combiningClass(code) != 0; };
    for (auto at = codes.begin(); at != codes.end();) {
        const auto begin = std::find_if(at, codes.end(), isMark);
        at = std::find_if_not(begin, codes.end(), isMark);
        if (at - begin > 1)
            std::stable_sort(begin, at, [](std::int32_t a, std::int32_t b) {
                return combiningClass(a) < combiningClass(b);
            });
    }
}

// Turns the decomposed, ordered codes into UTF-8; `codes` is used up.
std::string_view encodeCodes(std::vector<std::int32_t>& codes, int options)
{
    const auto count = static_cast<utf8proc_ssize_t>(codes.size());
    codes.push_back(0); // room for the library's final zero
    const auto bytes = utf8proc_reencode(codes.data(), count, optionsOf(options));
    return {reinterpret_cast<const char*>(codes.data()),
        static_cast<std::size_t>(std::max<utf8proc_ssize_t>(bytes, 0))};
}

void decomposeAlone(std::int32_t code, int options, std::vector<std::int32_t>& out)
{
    out.clear();
    decompose(code, options, out);
}

// Whether a character that decomposes to `codes` begins with one that joins nothing before it.
bool startsFresh(std::int32_t code, const std::vector<std::int32_t>& codes)
{
    if (isLaterMark(code))
        return true;
    const auto* first = utf8proc_get_property(codes.front());
    switch (first->boundclass) {
    case UTF8PROC_BOUNDCLASS_EXTEND:
    case UTF8PROC_BOUNDCLASS_SPACINGMARK:
    case UTF8PROC_BOUNDCLASS_V:
    case UTF8PROC_BOUNDCLASS_T:
        return false;
    default:
        return first->combining_class == 0;
    }
}

} // namespace

TextChanger::TextChanger(const Origin& from, bool tracked, ChangedText& out)
    : m_from(&from)
    , m_tracked(tracked)
    , m_out(&out)
{
    out.text.clear();
    out.ends.clear();
}

void TextChanger::copy(std::string_view text, std::size_t begin, std::size_t end)
{
    m_out->text.append(text.substr(begin, end - begin));
    for (std::size_t i = begin; m_tracked && i < end; ++i)
        m_out->ends.push_back(m_from->at(i + 1));
}

void TextChanger::put(std::string_view text, std::size_t sourceEnd)
{
    m_out->text.append(text);
    if (m_tracked)
        m_out->ends.insert(m_out->ends.end(), text.size(), m_from->at(sourceEnd));
}

std::unique_ptr<TextNormalizer::Form> TextNormalizer::makeForm(int options)
{
    auto form = std::make_unique<Form>();
    form->options = options;
    std::vector<std::int32_t> codes;
    std::string text;
    for (std::int32_t code = 0x80; code < 0x10000; ++code) {
        if (!utf8proc_codepoint_valid(code))
            continue;
        const auto index = static_cast<std::size_t>(code);
        decomposeAlone(code, options, codes);
        form->independent[index] = startsFresh(code, codes);
        text.clear();
        appendCharacter(code, text);
        order(codes);
        form->alone[index] = encodeCodes(codes, options) == text;
    }
    return form;
}

TextNormalizer::Buffer::Buffer(const TextNormalizer& normalizer)
{
    for (const Step& step : normalizer.m_steps) {
        m_matchers.emplace_back();
        if (const auto* replace = std::get_if<Replacement>(&step))
            m_matchers.back().emplace(replace->regex);
    }
}

bool TextNormalizer::independent(
    const Form& form, std::int32_t code, std::vector<std::int32_t>& codes)
{
    if (code < 0x80)
        return true;
    if (code < 0x10000)
        return form.independent[static_cast<std::size_t>(code)];
    decomposeAlone(code, form.options, codes);
    return startsFresh(code, codes);
}

void TextNormalizer::putStretch(std::string_view text, std::size_t begin, std::size_t end,
    const Form& form, TextChanger& out, Buffer& buffer)
{
    std::vector<std::int32_t>& codes = buffer.m_codes;
    codes.clear();
    for (std::size_t at = begin; at < end;) {
        const Character c = characterAt(text, at);
        decompose(c.code, form.options, codes);
        at += c.bytes;
    }
    order(codes);
    const std::string_view formed = encodeCodes(codes, form.options);
    if (formed == text.substr(begin, end - begin))
        out.copy(text, begin, end);
    else
        out.put(formed, end);
}

Status TextNormalizer::run(const std::unique_ptr<Form>& form, std::string_view text,
    TextChanger& out, Buffer& buffer) const
{
    for (std::size_t at = 0; at < text.size();) {
        std::size_t plain = at; // up to the last character that nothing joins
        Character c = characterAt(text, plain);
        while (c.bytes > 0 && c.code < 0x80) {
            plain += c.bytes;
            c = characterAt(text, plain);
        }
        if (c.bytes > 0 && plain > at && !independent(*form, c.code, buffer.m_codes))
            --plain;
        out.copy(text, at, plain);
        at = plain;
        if (at >= text.size())
            break;
        const Character first = characterAt(text, at);
        std::size_t end = at + first.bytes;
        for (c = characterAt(text, end); c.bytes > 0 && !independent(*form, c.code, buffer.m_codes);
             c = characterAt(text, end))
            end += c.bytes;
        if (end == at + first.bytes && first.code < 0x10000 &&
            form->alone[static_cast<std::size_t>(first.code)])
            out.copy(text, at, end);
        else
            putStretch(text, at, end, *form, out, buffer);
        at = end;
    }
    return {};
}

Status TextNormalizer::run(
    const Lowercase& step, std::string_view text, TextChanger& out, Buffer& buffer) const
{
    (void)step, (void)buffer;
    std::string small;
    for (std::size_t at = 0; at < text.size();) {
        const Character c = characterAt(text, at);
        small.clear();
        appendCharacter(c.code == kCapitalDottedI ? 'i' : utf8proc_tolower(c.code), small);
        if (c.code == kCapitalDottedI)
            appendCharacter(kDotAbove, small);
        at += c.bytes;
        out.put(small, at);
    }
    return {};
}

Status TextNormalizer::run(
    const Replacement& step, std::string_view text, TextChanger& out, Buffer& buffer) const
{
    RegexMatcher::Cursor cursor;
    std::size_t at = 0;
    while (!text.empty()) {
        TextRange match;
        MR_ASSIGN(bool found, buffer.m_matcher->next(text, cursor, match));
        if (!found)
            break;
        out.copy(text, at, match.begin);
        if (out.bytes() + step.with.size() > buffer.m_mostBytes)
            return replacedTooLong(out.bytes() + step.with.size(), buffer.m_mostBytes);
        out.put(step.with, match.end);
        at = match.end;
    }
    out.copy(text, at, text.size());
    return {};
}

Status TextNormalizer::run(
    const Prepend& step, std::string_view text, TextChanger& out, Buffer& buffer) const
{
    if (step.text.size() > buffer.m_mostBytes)
        return replacedTooLong(step.text.size(), buffer.m_mostBytes);
    // The prefix ends with the first character, whose own bytes must not end before it.
    const std::size_t first = characterAt(text, 0).bytes;
    if (first > 0) {
        out.put(step.text, first);
        out.put(text.substr(0, first), first);
    }
    out.copy(text, first, text.size());
    return {};
}

Status TextNormalizer::run(
    const Strip& step, std::string_view text, TextChanger& out, Buffer& buffer) const
{
    std::size_t begin = 0;
    std::size_t end = text.size();
    const bool left = step.left && !buffer.m_goesOn;
    for (Character c = characterAt(text, begin); left && c.bytes > 0 && isSpace(c.code);
         c = characterAt(text, begin))
        begin += c.bytes;
    for (Character c = characterBefore(text, end);
         step.right && end > begin && c.bytes > 0 && isSpace(c.code);
         c = characterBefore(text, end))
        end -= c.bytes;
    out.copy(text, begin, end);
    return {};
}

Status TextNormalizer::run(
    const StripAccents& step, std::string_view text, TextChanger& out, Buffer& buffer) const
{
    (void)step, (void)buffer;
    for (std::size_t at = 0; at < text.size();) {
        const Character c = characterAt(text, at);
        const auto category = utf8proc_category(c.code);
        // Upstream takes all marks that it knows for accents.
        if (isLaterMark(c.code) ||
            (category != UTF8PROC_CATEGORY_MN && category != UTF8PROC_CATEGORY_MC &&
                category != UTF8PROC_CATEGORY_ME))
            out.copy(text, at, at + c.bytes);
        at += c.bytes;
    }
    return {};
}

Status TextNormalizer::apply(
    std::string_view& text, Origin& origin, bool tracked, Buffer& buffer, bool goesOn) const
{
    buffer.m_mostBytes = mostReplacedBytes(text.size());
    std::size_t done = 0;
    for (std::size_t i = 0; i < m_steps.size(); ++i) {
        if (goesOn && std::holds_alternative<Prepend>(m_steps[i]))
            continue;
        buffer.m_goesOn = goesOn;
        ChangedText& to = buffer.m_texts[done++ % 2];
        TextChanger out(origin, tracked, to);
        buffer.m_matcher = buffer.m_matchers[i] ? &*buffer.m_matchers[i] : nullptr;
        MR_TRY(
            std::visit([&](const auto& step) { return run(step, text, out, buffer); }, m_steps[i]));
        text = to.text;
        if (text.size() > buffer.m_mostBytes)
            return replacedTooLong(text.size(), buffer.m_mostBytes);
        if (tracked)
            origin = {to.ends.data(), origin.base};
    }
    return {};
}

} // namespace mr
