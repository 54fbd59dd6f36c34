// VisitEmitter: brings optimizer state that lives on the host to the device for its update, and
// home again.
//
// Threads    One owner.
// Ownership  Writer and layout are lent.

#pragma once

#include "core/plan/disk_emitter.h"
#include "core/plan/plan_writer.h"
#include "core/plan/step_layout.h"
#include "core/plan/stream_emitter.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mr {

class VisitEmitter
{
public:
    VisitEmitter(
        PlanWriter& writer, const StepLayout& layout, DiskEmitter& disk, StreamEmitter& stream)
        : m_writer(writer)
        , m_layout(layout)
        , m_disk(disk)
        , m_stream(stream)
    {
    }

    void begin() { m_tiles.clear(); }

    // Lists the tiles of a group's state that visit the device for its update.
    // `weightSlot`: that of weights that stream, for an update behind backward.
    void list(GroupId group, std::uint8_t weightSlot = 0);
    std::size_t count() const noexcept { return m_tiles.size(); }

    // As many tiles may be on the device, or on their way, with this one.
    std::size_t slotsFor(std::size_t tile) const;
    // Fetches so many, from this one on.
    void fetchFirst(std::size_t tile);
    void fetch(std::size_t tile);
    // Updates the tile and brings it home.
    void update(std::size_t tile);

private:
    struct Tile {
        GroupId group;
        std::int64_t first = 0;
        std::int64_t count = 0;
        std::uint8_t weightSlot = 0;
        // An update behind backward with data on disk has these from its fetch on.
        std::int16_t stage = -1;
        std::optional<Wait> read = {};
    };

    Task make(TaskKind kind, Lane lane, std::size_t tile) const;
    void fetchWeights(std::size_t tile);

    PlanWriter& m_writer;
    const StepLayout& m_layout;
    DiskEmitter& m_disk;
    StreamEmitter& m_stream;
    std::vector<Tile> m_tiles; // in this step, in the order of their updates
};

} // namespace mr
