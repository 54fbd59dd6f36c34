// PairTable: the merges of two neighbouring tokens, by open addressing.
//
// Threads  Read-only after the last put().

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mr {

class PairTable
{
public:
    struct Merge {
        std::uint32_t rank = kNone; // lower merges first
        std::int32_t id = -1;
    };
    static constexpr std::uint32_t kNone = UINT32_MAX;

    // Room for `pairs` of them.
    void reserve(std::size_t pairs)
    {
        m_bits = 4;
        while ((std::size_t{1} << m_bits) < 2 * pairs)
            ++m_bits;
        m_slots.assign(std::size_t{1} << m_bits, {});
    }

    // A pair that is there already takes the new meaning. Precondition: there is room.
    void put(std::int32_t left, std::int32_t right, Merge merge)
    {
        Slot& slot = m_slots[find(key(left, right))];
        slot = {key(left, right), merge};
    }

    Merge get(std::int32_t left, std::int32_t right) const noexcept
    {
        return m_slots[find(key(left, right))].merge;
    }

private:
    static constexpr std::uint64_t kFree = UINT64_MAX;
    struct Slot {
        std::uint64_t key = kFree;
        Merge merge;
    };

    static std::uint64_t key(std::int32_t left, std::int32_t right) noexcept
    {
        return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
               static_cast<std::uint32_t>(right);
    }

    std::size_t find(std::uint64_t wanted) const noexcept
    {
        const std::size_t mask = m_slots.size() - 1;
        std::size_t at = (wanted * 0x9E3779B97F4A7C15U) >> (64 - m_bits);
        while (m_slots[at].key != wanted && m_slots[at].key != kFree)
            at = (at + 1) & mask;
        return at;
    }

    std::vector<Slot> m_slots;
    unsigned m_bits = 4;
};

} // namespace mr
