#include "core/tokenizer/prefix_tree.h"

#include <algorithm>

namespace mr {
namespace {

// Texts [begin, end) have the first `depth` bytes in common, which are those of `node`.
struct Range {
    PrefixTree::Node node = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t depth = 0;
};

} // namespace

void PrefixTree::build(std::vector<std::pair<std::string_view, std::int32_t>> texts)
{
    std::sort(texts.begin(), texts.end());
    m_inner.assign(1, {});
    m_labels.assign(1, '\0');
    std::vector<Range> ranges{{kRoot, 0, texts.size(), 0}};
    for (std::size_t next = 0; next < ranges.size(); ++next) {
        const Range range = ranges[next]; // a copy: push_back() below moves the others
        std::size_t at = range.begin;
        if (at < range.end && texts[at].first.size() == range.depth)
            m_inner[range.node].value = texts[at++].second;
        m_inner[range.node].first = static_cast<Node>(m_inner.size());
        while (at < range.end) {
            const std::size_t begin = at;
            const char label = texts[at].first[range.depth];
            while (at < range.end && texts[at].first[range.depth] == label)
                ++at;
            ranges.push_back({static_cast<Node>(m_inner.size()), begin, at, range.depth + 1});
            m_inner.emplace_back();
            m_labels.push_back(label);
            ++m_inner[range.node].count;
        }
    }
}

PrefixTree::Node PrefixTree::at(std::string_view text) const noexcept
{
    Node node = kRoot;
    for (const char c : text) {
        node = step(node, c);
        if (node == kRoot)
            break;
    }
    return node;
}

std::int32_t PrefixTree::find(std::string_view text) const noexcept
{
    const Node node = at(text);
    return node == kRoot ? kNothing : value(node);
}

void PrefixTree::erase(std::string_view text)
{
    if (const Node node = at(text); node != kRoot)
        m_inner[node].value = kNothing;
}

} // namespace mr
