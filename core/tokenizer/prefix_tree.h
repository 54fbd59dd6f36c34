// PrefixTree: the pieces of a vocabulary by their beginnings, for looking at every piece that a
// text could begin with.
//
// The children of a node lie side by side in the order of their bytes, so a step reads one line of
// memory or two, and a vocabulary of 250,000 pieces takes 10 MB.
//
// Threads  Read-only after build() and erase().

#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace mr {

class PrefixTree
{
public:
    using Node = std::uint32_t;
    static constexpr Node kRoot = 0;
    static constexpr std::int32_t kNothing = -1;

    // Texts that are not empty, each once, in any order.
    void build(std::vector<std::pair<std::string_view, std::int32_t>> texts);
    // Leaves the node without a value.
    void erase(std::string_view text);

    // The node one byte further, or kRoot: there is none.
    Node step(Node node, char byte) const noexcept
    {
        const Inner& inner = m_inner[node];
        const char* const begin = m_labels.data() + inner.first;
        const void* const found =
            inner.count == 0 ? nullptr : std::memchr(begin, byte, inner.count);
        return found == nullptr
                   ? kRoot
                   : static_cast<Node>(inner.first + (static_cast<const char*>(found) - begin));
    }
    std::int32_t value(Node node) const noexcept { return m_inner[node].value; }
    std::int32_t find(std::string_view text) const noexcept; // kNothing: absent

private:
    struct Inner {
        Node first = 0; // first of its children
        std::uint32_t count = 0;
        std::int32_t value = kNothing;
    };
    Node at(std::string_view text) const noexcept; // kRoot: there is none

    std::vector<Inner> m_inner{Inner()};
    std::vector<char> m_labels{'\0'}; // the last byte of each node
};

} // namespace mr
