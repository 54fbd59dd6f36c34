// ReadySet: which threads of a block may go on, and which of them is next.

#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace mr::simt {

class ReadySet
{
public:
    static constexpr int kThreads = 1024;

    // 0 to `count` - 1.
    void fill(int count) noexcept
    {
        m_words = {};
        for (int i = 0; i < count; ++i)
            add(i);
    }

    void add(int thread) noexcept { word(thread) |= bit(thread); }

    void remove(int thread) noexcept { word(thread) &= ~bit(thread); }

    // The lowest member from `from` on; -1: none.
    int next(int from) const noexcept
    {
        for (int w = from / 64; w < kWords; ++w) {
            std::uint64_t bits = m_words[static_cast<std::size_t>(w)];
            if (w == from / 64)
                bits &= ~std::uint64_t{0} << (from % 64);
            if (bits != 0)
                return w * 64 + std::countr_zero(bits);
        }
        return -1;
    }

    int last() const noexcept
    {
        for (int w = kWords - 1; w >= 0; --w)
            if (const std::uint64_t bits = m_words[static_cast<std::size_t>(w)]; bits != 0)
                return w * 64 + 63 - std::countl_zero(bits);
        return -1;
    }

private:
    static constexpr int kWords = kThreads / 64;

    static std::uint64_t bit(int thread) noexcept { return std::uint64_t{1} << (thread % 64); }

    std::uint64_t& word(int thread) noexcept
    {
        return m_words[static_cast<std::size_t>(thread / 64)];
    }

    std::array<std::uint64_t, kWords> m_words{};
};

} // namespace mr::simt
