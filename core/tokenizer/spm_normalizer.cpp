#include "core/tokenizer/spm_normalizer.h"

#include "core/tokenizer/subword_model.h"
#include "core/tokenizer/unicode_text.h"

#include <algorithm>
#include <utility>

namespace mr {

bool SpmNormalizer::load(
    std::string_view charsmap, const std::vector<std::string_view>& symbols, bool trims)
{
    m_trims = trims;
    m_hasSymbols = !symbols.empty();
    std::vector<std::pair<std::string_view, std::int32_t>> texts;
    std::size_t mostBytes = 0;
    for (const std::string_view symbol : symbols) {
        texts.emplace_back(symbol, 0);
        mostBytes = std::max(mostBytes, symbol.size());
    }
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    m_symbols.build(std::move(texts));
    if (charsmap.empty())
        return true;
    Result<PrecompiledCharsmap> table = PrecompiledCharsmap::read(charsmap);
    if (!table.ok())
        return false;
    std::optional<PrecompiledCharsmap::Extent> extent = table.value().extent();
    if (!extent)
        return false;
    m_table = std::move(table).value();
    m_extent = std::move(*extent);
    m_ahead = std::max(mostBytes, m_extent.mostBytes);
    return true;
}

bool SpmNormalizer::joins(std::int32_t code) const noexcept
{
    return std::binary_search(m_extent.joining.begin(), m_extent.joining.end(), code);
}

SpmNormalizer::Step SpmNormalizer::front(std::string_view text) const noexcept
{
    std::size_t symbol = 0;
    PrefixTree::Node node = PrefixTree::kRoot;
    for (std::size_t end = 0; m_hasSymbols && end < text.size();) {
        node = m_symbols.step(node, text[end++]);
        if (node == PrefixTree::kRoot)
            break;
        if (m_symbols.value(node) != PrefixTree::kNothing)
            symbol = end;
    }
    if (symbol > 0)
        return {text.substr(0, symbol), symbol};
    if (m_table)
        if (const auto entry = m_table->findLongest(text))
            return {entry->becomes, entry->bytes};
    const std::size_t bytes = std::max<std::size_t>(characterAt(text, 0).bytes, 1);
    return {text.substr(0, bytes), bytes};
}

std::optional<SpmNormalizer::Border> SpmNormalizer::border(
    std::string_view text, std::size_t at) const noexcept
{
    const Character left = characterBefore(text, at);
    const Character right = characterAt(text, at);
    Border out{left.code, right.code, left.code, right.code};
    if (left.code < 0 || right.code < 0)
        return std::nullopt;
    if (!m_table)
        return out;
    if (text.size() - at < m_ahead || joins(left.code) || joins(right.code))
        return std::nullopt;
    const std::string_view character = text.substr(at - left.bytes, left.bytes);
    const auto entry = m_table->findLongest(character);
    const std::string_view before = entry ? entry->becomes : character;
    out.left = characterBefore(before, before.size()).code;
    out.right = characterAt(front(text.substr(at)).text, 0).code;
    return out.left < 0 || out.right < 0 ? std::nullopt : std::optional(out);
}

std::string SpmNormalizer::normalized(
    std::string_view text, bool begins, bool prefixed, bool ends) const
{
    std::string out;
    for (Step step; begins && m_trims && !text.empty(); text.remove_prefix(step.bytes)) {
        step = front(text);
        if (step.text != " ")
            break;
    }
    if (text.empty())
        return out;
    out.reserve(text.size() + text.size() / 2);
    if (prefixed)
        out += kSpaceMark;
    bool afterSpace = begins && m_trims;
    while (!text.empty()) {
        Step step = front(text);
        text.remove_prefix(step.bytes);
        while (afterSpace && step.text.starts_with(' '))
            step.text.remove_prefix(1);
        for (const char& c : step.text)
            out += c == ' ' ? kSpaceMark : std::string_view(&c, 1);
        if (!step.text.empty())
            afterSpace = m_trims && step.text.ends_with(' ');
    }
    while (ends && m_trims && out.ends_with(kSpaceMark))
        out.resize(out.size() - kSpaceMark.size());
    return out;
}

} // namespace mr
