// BoundaryEmitter: copies boundaries that live on the host or the disk: out behind forward, back
// ahead of backward.
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

    // Before the item: loads its input.
    void bring(const WorkItem& item);
    // Behind it: saves its output.
    void leave(const WorkItem& item);

private:
    bool isSaved(int boundary) const;
    bool isStillThere(int boundary) const;
    bool isOnDisk(int boundary, MicroBatch micro) const;
    Task make(TaskKind kind, Lane lane, int boundary, MicroBatch micro) const;

    PlanWriter& m_writer;
    DiskEmitter& m_disk;
    const StepLayout* m_layout = nullptr; // for the plan being built
};

} // namespace mr
