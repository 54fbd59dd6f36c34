// DiskPlaces: the places of host memory that data on disk passes through (Task::stage), and where
// in them each part of a tile lies.
//
// Threads    Constant after construction.
// Ownership  Borrows the bytes of the TierStore.
// Errors     None.
// Units      Elements and bytes as named. A place starts at a page.

#pragma once

#include "core/plan/plan.h"
#include "core/tier/tier_store.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

class DiskPlaces
{
public:
    DiskPlaces() = default;
    explicit DiskPlaces(const TierStore& tiers);

    const DiskCuts& cuts() const noexcept { return m_cuts; }
    const DiskParts& parts() const noexcept { return m_parts; }

    std::span<std::byte> all() const noexcept { return m_all; }
    std::span<std::byte> of(int stage) const noexcept
    {
        return m_places[static_cast<std::size_t>(stage)];
    }
    // A region of the tile in this place, and a plane at an element of it. Places of updates have
    // all regions, the others theirs.
    std::span<std::byte> region(int stage, std::int32_t tile, DiskRegion region) const noexcept;
    std::byte* plane(
        int stage, std::int32_t tile, StatePart part, std::int64_t element) const noexcept;

private:
    StateCodec m_codec = StateCodec::Plain;
    DiskCuts m_cuts;
    DiskParts m_parts;
    std::span<std::byte> m_all;
    std::vector<std::span<std::byte>> m_places;
};

} // namespace mr
