// StreamEmitter: brings weights that stream to the device for the layers that read them, and makes
// late updates at the turn of their layer.
//
// Threads    One owner.
// Ownership  The other emitters are lent.

#pragma once

#include "core/plan/disk_emitter.h"
#include "core/plan/plan_writer.h"
#include "core/plan/update_emitter.h"
#include "core/plan/weight_slots.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace mr {

class StreamEmitter
{
public:
    StreamEmitter(PlanWriter& writer, WeightSlots& slots, DiskEmitter& disk, UpdateEmitter& updates)
        : m_writer(writer)
        , m_slots(slots)
        , m_disk(disk)
        , m_updates(updates)
    {
    }

    void begin();

    // At the group's first turn in the step: makes its late updates that are due, or defers them to
    // the fetch of their weights from disk.
    void open(GroupId group);
    // The slot that has the group's weights, or will have.
    std::uint8_t bring(GroupId group, StepIndex version);
    // The slot that has this tile of embedding or head, or will have: `slot`, if it is not there.
    std::uint8_t bringRange(const Task& range, std::optional<std::uint8_t> slot = {});
    // Its weights are in use until this task is over.
    void keepSlot(std::uint8_t slot, Wait task) { m_slots.at(slot).lastUse = task.index(); }
    // Makes the late update that is due, or else reads the weights from disk. Puts the stage into
    // `fetch` and returns the task to wait for.
    Wait bringTile(Task& fetch);

private:
    void fetch(std::uint8_t slot, GroupId group, StepIndex version);
    void fetchFrozen(std::uint8_t slot, GroupId group, StepIndex version);
    Task nextTile(GroupId group, StepIndex version, std::int64_t first) const;
    void deferTiles(const PendingUpdate& update);

    PlanWriter& m_writer;
    WeightSlots& m_slots;
    DiskEmitter& m_disk;
    UpdateEmitter& m_updates;
    std::vector<bool> m_open;         // by group
    std::vector<PendingUpdate> m_due; // updates of weights on disk, until their fetch
};

} // namespace mr
