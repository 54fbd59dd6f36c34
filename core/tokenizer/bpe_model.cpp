#include "core/tokenizer/bpe_model.h"

#include "core/tokenizer/unicode_text.h"

#include <algorithm>
#include <functional>

namespace mr {
namespace {

// Longer words take the heap: scanning is quadratic, but has no heap to keep in order.
constexpr std::size_t kShortSymbols = 32;

} // namespace

struct BpeModel::Merging final : public WordModel::Scratch {
    struct Node {
        Symbol symbol;
        std::uint32_t before = UINT32_MAX;
        std::uint32_t after = UINT32_MAX;
    };
    std::vector<PairTable::Merge> ranks; // short word: merge of symbol i and the next
    std::vector<Node> nodes;             // long word
    std::vector<std::uint64_t> heap;     // rank << 32 | node
};

std::unique_ptr<WordModel::Scratch> BpeModel::makeScratch() const
{
    return std::make_unique<Merging>();
}

BpeModel::Initial BpeModel::initial(std::string_view character) const
{
    if (const TokenId id = find(character); id >= 0)
        return {{id}, false};
    if (!m_byteFallback)
        return {};
    Initial out{{}, true};
    for (const char c : character) {
        const TokenId id = m_byteIds[static_cast<unsigned char>(c)];
        if (id < 0)
            return {};
        out.ids.push_back(id);
    }
    return out;
}

TokenId BpeModel::ofCharacter(std::int32_t code) const noexcept
{
    const auto found = m_byCharacter.find(code);
    return found == m_byCharacter.end() ? -1 : found->second;
}

// One symbol per byte or character. Unknown ones become the unknown token, neighbours together
// where the file says so, or nothing where it has none.
void BpeModel::begin(std::string_view word, std::vector<Symbol>& out) const
{
    out.clear();
    Symbol unknown;
    const auto flush = [&] {
        if (unknown.bytes > 0)
            out.push_back(unknown);
        unknown.bytes = 0;
    };
    for (std::size_t at = 0; at < word.size();) {
        const Character c = m_byteLevel ? Character{-1, 1} : characterAt(word, at);
        const auto bytes = static_cast<std::uint32_t>(c.bytes);
        const auto byte = static_cast<unsigned char>(word[at]);
        const TokenId known = m_byteLevel ? m_ofByte[byte] : ofCharacter(c.code);
        at += c.bytes;
        if (known >= 0) {
            flush();
            out.push_back({known, bytes});
            continue;
        }
        const Initial made =
            m_byteLevel ? m_rareBytes[byte] : initial(word.substr(at - c.bytes, c.bytes));
        for (std::size_t i = 0; i < made.ids.size(); ++i) {
            if (!made.fallback)
                flush(); // as upstream: fallback bytes come before an unknown that waits
            const bool perByte = made.fallback && !m_byteLevel;
            out.push_back({made.ids[i], perByte ? 1 : i + 1 == made.ids.size() ? bytes : 0});
        }
        if (!made.ids.empty() || m_unknown < 0)
            continue;
        if (!m_fuseUnknown)
            flush();
        unknown = {m_unknown, unknown.bytes + bytes};
    }
    flush();
}

void BpeModel::merge(std::vector<Symbol>& word, Merging& scratch) const
{
    if (word.size() > kShortSymbols)
        return mergeLong(word, scratch);
    std::vector<PairTable::Merge>& ranks = scratch.ranks;
    ranks.clear();
    for (std::size_t i = 0; i + 1 < word.size(); ++i)
        ranks.push_back(m_merges.get(word[i].id, word[i + 1].id));
    while (!ranks.empty()) {
        const auto best = std::min_element(ranks.begin(), ranks.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
        if (best->rank == PairTable::kNone)
            break;
        const auto i = static_cast<std::size_t>(best - ranks.begin());
        word[i] = {best->id, word[i].bytes + word[i + 1].bytes};
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        ranks.erase(best);
        if (i > 0)
            ranks[i - 1] = m_merges.get(word[i - 1].id, word[i].id);
        if (i < ranks.size())
            ranks[i] = m_merges.get(word[i].id, word[i + 1].id);
    }
}

void BpeModel::mergeLong(std::vector<Symbol>& word, Merging& scratch) const
{
    constexpr std::uint32_t kNone = UINT32_MAX;
    auto& nodes = scratch.nodes;
    auto& heap = scratch.heap;
    const auto pairOf = [&](std::uint32_t at) {
        return m_merges.get(nodes[at].symbol.id, nodes[nodes[at].after].symbol.id);
    };
    const auto key = [&](std::uint32_t at) { return std::uint64_t{pairOf(at).rank} << 32 | at; };
    const auto push = [&](std::uint32_t at) {
        if (pairOf(at).rank == PairTable::kNone)
            return;
        heap.push_back(key(at));
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    };
    nodes.clear();
    heap.clear();
    const auto count = static_cast<std::uint32_t>(word.size());
    for (std::uint32_t i = 0; i < count; ++i)
        nodes.push_back({word[i], i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1});
    for (std::uint32_t i = 0; i + 1 < count; ++i)
        if (pairOf(i).rank != PairTable::kNone)
            heap.push_back(key(i));
    std::make_heap(heap.begin(), heap.end(), std::greater<>());
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        const std::uint64_t top = heap.back();
        heap.pop_back();
        const auto at = static_cast<std::uint32_t>(top);
        Merging::Node& left = nodes[at];
        // An older entry: its pair is gone, or has become another.
        if (left.symbol.id < 0 || left.after == kNone || key(at) != top)
            continue;
        Merging::Node& right = nodes[left.after];
        left.symbol = {pairOf(at).id, left.symbol.bytes + right.symbol.bytes};
        right.symbol.id = -1;
        left.after = right.after;
        if (left.after != kNone)
            nodes[left.after].before = at;
        if (left.after != kNone)
            push(at);
        if (left.before != kNone)
            push(left.before);
    }
    word.clear();
    for (std::uint32_t at = 0; at != kNone; at = nodes[at].after)
        word.push_back(nodes[at].symbol);
}

Status BpeModel::tokenize(std::string_view word, WordModel::Scratch& scratch) const
{
    std::vector<Symbol>& out = scratch.word;
    const auto whole = m_ignoreMerges ? m_whole.find(word) : m_whole.end();
    if (whole != m_whole.end()) {
        out.assign(1, {whole->second, static_cast<std::uint32_t>(word.size())});
        return {};
    }
    begin(word, out);
    if (out.size() > 1)
        merge(out, static_cast<Merging&>(scratch));
    return {};
}

std::size_t BpeModel::wordBytes(std::string_view text) const noexcept
{
    if (!m_wordsAreApart)
        return text.size();
    std::size_t at = 0;
    while (text.substr(at).starts_with(kSpaceMark))
        at += kSpaceMark.size();
    return std::min(text.find(kSpaceMark, at), text.size());
}

} // namespace mr
