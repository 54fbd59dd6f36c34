// WeightSlots: weights that stream, while they are on the device.
//
// Threads  One owner.

#pragma once

#include "core/plan/plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mr {

struct WeightSlot {
    GroupId group{-1};
    std::int64_t lastUse = -1; // by which task
    std::int64_t first = 0;    // of a tile; a whole group has 0
    std::int64_t count = 0;
};

class WeightSlots
{
public:
    // Frozen weights (`held`) are kept from one step to the next; other weights come anew.
    void begin(int count, std::span<const HeldSlot> held = {})
    {
        m_slots.assign(static_cast<std::size_t>(count), {});
        for (std::size_t i = 0; i < std::min(held.size(), m_slots.size()); ++i)
            m_slots[i].group = held[i].group;
    }

    std::span<const WeightSlot> all() const noexcept { return m_slots; }

    WeightSlot& at(std::uint8_t slot) { return m_slots[slot]; }

    // The slot that has the group's weights.
    std::optional<std::uint8_t> find(GroupId group) const
    {
        const auto slot = std::find_if(m_slots.begin(), m_slots.end(),
            [&](const WeightSlot& each) { return each.group == group; });
        return slot == m_slots.end() ? std::nullopt : std::optional(indexOf(slot));
    }

    // The slot that has this tile.
    std::optional<std::uint8_t> find(GroupId group, std::int64_t first, std::int64_t count) const
    {
        const auto slot = std::find_if(m_slots.begin(), m_slots.end(), [&](const WeightSlot& each) {
            return each.group == group && each.first == first && each.count == count;
        });
        return slot == m_slots.end() ? std::nullopt : std::optional(indexOf(slot));
    }

    // The least recently used slot.
    std::uint8_t oldest() const
    {
        return indexOf(std::min_element(m_slots.begin(), m_slots.end(),
            [&](const WeightSlot& a, const WeightSlot& b) { return a.lastUse < b.lastUse; }));
    }

private:
    std::uint8_t indexOf(std::vector<WeightSlot>::const_iterator slot) const
    {
        return static_cast<std::uint8_t>(slot - m_slots.begin());
    }

    std::vector<WeightSlot> m_slots;
};

} // namespace mr
