// BoundaryEmitter: activations between layers whose home is the host or the disk, copied there
// behind forward and back ahead of backward.
//
// Threads    One owner.
// Ownership  The other emitters and the layout are lent.

#pragma once

#include "core/plan/disk_emitter.h"
#include "core/plan/plan_writer.h"
#include "core/plan/step_layout.h"

#include <optional>
#include <vector>

namespace mr {

class BoundaryEmitter
{
public:
    BoundaryEmitter(PlanWriter& writer, DiskEmitter& disk)
        : m_writer(writer)
        , m_disk(disk)
    {
    }

    void begin(const StepLayout& layout);

    // What the item must wait for before it reads its input and writes its output.
    std::optional<Wait> bring(const WorkItem& item);
    void leave(const WorkItem& item, Wait done);

private:
    // A place on the device.
    struct Slot {
        std::optional<Wait> save;   // the last from here
        std::optional<Wait> reader; // or writer, the last
    };

    Slot& slotOf(int boundary, MicroBatch micro);
    std::optional<Wait>& savedOf(int boundary, MicroBatch micro);
    bool isSaved(int boundary) const;
    bool isOnDisk(int boundary, MicroBatch micro) const;
    Task make(TaskKind kind, Lane lane, int boundary, MicroBatch micro) const;
    Wait load(int boundary, MicroBatch micro);
    void save(int boundary, MicroBatch micro, Wait written);

    PlanWriter& m_writer;
    DiskEmitter& m_disk;
    const StepLayout* m_layout = nullptr; // of the plan being built
    std::vector<Slot> m_slots;
    std::vector<std::optional<Wait>> m_saved; // the copies on the host or on disk
};

} // namespace mr
