// The steps of TextNormalizer that SentencePiece's models have.

#include "core/tokenizer/text_normalizer.h"
#include "core/tokenizer/unicode_text.h"

#include <utf8proc.h>

#include <array>
#include <utility>

namespace mr {
namespace {

// Longer clusters are looked up by character only. Source: the tokenizers package, 0.23.
constexpr std::size_t kClusterBytes = 6;

enum class NmtChange { Keep, Drop, Space };

// The rules that SentencePiece calls "nmt". Source: the same package.
NmtChange nmtChange(std::int32_t code) noexcept
{
    using CodeRange = std::pair<std::int32_t, std::int32_t>;
    constexpr std::array<CodeRange, 6> kDropped{
        {{0x1, 0x8}, {0xB, 0xB}, {0xE, 0x1F}, {0x7F, 0x7F}, {0x8F, 0x8F}, {0x9F, 0x9F}}};
    constexpr std::array<CodeRange, 8> kSpaces{{{0x9, 0xA}, {0xC, 0xD}, {0x1680, 0x1680},
        {0x200B, 0x200F}, {0x2028, 0x2029}, {0x2581, 0x2581}, {0xFEFF, 0xFEFF}, {0xFFFD, 0xFFFD}}};
    for (const auto& [first, last] : kDropped)
        if (code >= first && code <= last)
            return NmtChange::Drop;
    for (const auto& [first, last] : kSpaces)
        if (code >= first && code <= last)
            return NmtChange::Space;
    return NmtChange::Keep;
}

// A character in the fast path: one byte, a cluster of its own, and nothing to change.
bool isPlain(std::string_view text, std::size_t at, const std::bitset<0x80>& changed) noexcept
{
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool alone = at + 1 == text.size() || static_cast<unsigned char>(text[at + 1]) < 0x80;
    return byte < 0x80 && alone && !changed[byte];
}

} // namespace

TextNormalizer::Precompiled::Precompiled(PrecompiledCharsmap charsmap)
    : map(std::move(charsmap))
{
    for (std::size_t byte = 0; byte < changed.size(); ++byte)
        changed[byte] = map.find(std::string(1, static_cast<char>(byte))).has_value();
    changed['\r'] = true; // joins a line feed
}

// Borders of pictures, flags and consonants joined by a virama depend on characters farther in
// front, so places before them do not count.
bool TextNormalizer::Precompiled::isBorder(std::string_view text, std::size_t at)
{
    const std::int32_t before = characterBefore(text, at).code;
    const std::int32_t next = characterAt(text, at).code;
    if (before < 0 || next < 0)
        return false;
    const int classNext = utf8proc_get_property(next)->boundclass;
    const int classBefore = utf8proc_get_property(before)->boundclass;
    if (!isSpace(next) &&
        (classBefore == UTF8PROC_BOUNDCLASS_EXTEND || classBefore == UTF8PROC_BOUNDCLASS_ZWJ))
        return false;
    return (classNext == UTF8PROC_BOUNDCLASS_OTHER || classNext == UTF8PROC_BOUNDCLASS_CONTROL ||
               classNext == UTF8PROC_BOUNDCLASS_CR || classNext == UTF8PROC_BOUNDCLASS_LF) &&
           utf8proc_grapheme_break(before, next);
}

Status TextNormalizer::run(
    const Precompiled& step, std::string_view text, TextChanger& out, Buffer& buffer) const
{
    (void)buffer;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t plain = at;
        while (plain < text.size() && isPlain(text, plain, step.changed))
            ++plain;
        out.copy(text, at, plain);
        at = plain;
        const std::size_t end = at + clusterBytes(text, at);
        const auto whole =
            end - at < kClusterBytes ? step.map.find(text.substr(at, end - at)) : std::nullopt;
        if (whole && end > at) {
            out.put(*whole, end);
            at = end;
        }
        while (at < end) {
            const std::size_t bytes = characterAt(text, at).bytes;
            const auto changed = step.map.find(text.substr(at, bytes));
            if (changed)
                out.put(*changed, at + bytes);
            else
                out.copy(text, at, at + bytes);
            at += bytes;
        }
    }
    return {};
}

Status TextNormalizer::run(
    const Nmt& step, std::string_view text, TextChanger& out, Buffer& buffer) const
{
    (void)step, (void)buffer;
    for (std::size_t at = 0; at < text.size();) {
        const Character c = characterAt(text, at);
        const NmtChange change = nmtChange(c.code);
        if (change == NmtChange::Keep)
            out.copy(text, at, at + c.bytes);
        if (change == NmtChange::Space)
            out.put(" ", at + c.bytes);
        at += c.bytes;
    }
    return {};
}

} // namespace mr
