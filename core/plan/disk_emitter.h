// DiskEmitter: brings data that lives on disk to places of host memory for the tasks that need it,
// and back.
//
// Threads    One owner.
// Ownership  Writer and slots are lent.

#pragma once

#include "core/plan/disk_cuts.h"
#include "core/plan/plan_writer.h"
#include "core/plan/weight_slots.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mr {

class DiskEmitter
{
public:
    // A place of host memory for data on its way between disk and device.
    struct Stage {
        std::optional<Wait> disk; // the last write to disk from there
        std::optional<Wait> copy; // to the device
    };

    DiskEmitter(PlanWriter& writer, const WeightSlots& slots);

    void begin(DiskSends sends);
    // Places of boundaries come behind all others.
    void openBoundaryStages(int stages);
    DiskSends sends() const noexcept { return m_sends; } // for updates that follow gradients
    Stage& stageOf(const Task& task) { return m_stages[static_cast<std::size_t>(task.stage)]; }

    // Reads state to a slot and puts its number into `update`; nothing where state is in memory.
    std::optional<Wait> read(Task& update);
    void write(const Task& update, Wait updated);
    // Sends weights and gradient from the device to the update's slot, as its tile needs them.
    // Returns the last send.
    std::optional<Wait> sendTo(const Task& update);
    // Spills the part of a finished gradient that lives on disk, tile by tile.
    void spill(GroupId group, Wait finished);
    // Reads weights alone, or frozen ones, to a place and puts its number into `fetch`.
    Wait readWeights(Task& fetch);
    Wait readFrozen(Task& fetch);
    // Elements of the tile of frozen weights that begins here.
    std::int64_t frozenCount(GroupId group, std::int64_t first) const;

    std::int16_t nextBoundaryStage();
    void writeBoundary(const Task& save, Wait saved);
    Wait readBoundary(Task& load);

private:
    using TileWaits = std::vector<std::optional<Wait>>;

    const DiskCuts& cuts() const noexcept { return m_cuts[m_follows ? 1 : 0]; }
    std::int32_t tileOf(const Task& task) const;
    const DiskRange& rangeOf(const Task& task) const;
    std::optional<Wait>& waitOf(TileWaits& waits, const Task& task);
    Wait send(const Task& task);
    Task readTo(Task& fetch, TaskKind kind);
    void spillTile(GroupId group, const DiskRange& tile, Wait finished);

    PlanWriter& m_writer;
    const WeightSlots& m_slots;
    std::array<DiskCuts, 2> m_cuts; // [0]: one norm for all groups; [1]: updates follow gradients
    DiskSends m_sends;              // for m_cuts[1]

    // State of the plan being built.
    bool m_follows = false;
    std::vector<Stage> m_stages; // by Task::stage
    TileWaits m_writes;          // by tile
    TileWaits m_spills;          // by tile, for gradients
    std::size_t m_tilesRead = 0;
    std::size_t m_weightsRead = 0;
    std::size_t m_spilled = 0;
    std::size_t m_boundariesMoved = 0;
};

} // namespace mr
