// BoundaryEmitter: activations between layers whose home is the host or the disk, copied there
// behind forward and back ahead of backward.
//
// Threads    One owner.
// Ownership  The other emitters and the layout are lent.

#pragma once

#include "core/plan/disk_emitter.h"
#include "core/plan/plan_writer.h"
#include "core/plan/step_layout.h"

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

    // Before the item: its input comes.
    void bring(const WorkItem& item);
    // Behind it: its output goes.
    void leave(const WorkItem& item);

private:
    bool isSaved(int boundary) const;
    bool isOnDisk(int boundary, MicroBatch micro) const;
    Task make(TaskKind kind, Lane lane, int boundary, MicroBatch micro) const;

    PlanWriter& m_writer;
    DiskEmitter& m_disk;
    const StepLayout* m_layout = nullptr; // of the plan being built
};

} // namespace mr
