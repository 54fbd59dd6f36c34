// StepUpdates: the updates of a step and their order: after the norm of all groups, or each group
// after its own gradient.
//
// Threads    One owner.
// Ownership  Layout and emitters are lent.

#pragma once

#include "core/plan/gradient_emitter.h"
#include "core/plan/step_layout.h"
#include "core/plan/stream_emitter.h"
#include "core/plan/update_emitter.h"
#include "core/plan/visit_emitter.h"

#include <cstddef>

namespace mr {

class StepUpdates
{
public:
    StepUpdates(PlanWriter& writer, const StepLayout& layout, GradientEmitter& gradients,
        UpdateEmitter& updates, StreamEmitter& stream, DiskEmitter& disk)
        : m_writer(writer)
        , m_layout(layout)
        , m_gradients(gradients)
        , m_updates(updates)
        , m_stream(stream)
        , m_visits(writer, layout, disk, stream)
    {
    }

    void begin() { m_visits.begin(); }

    // Makes the updates of the carry that are due now, or in a flush all exact ones, and removes
    // them from `out`. Where weights stream, a step makes each at the turn of its group.
    void makePending(Carry& out, bool flush);
    // Updates all groups after their norm.
    void update();
    // Updates one group after its own gradient.
    void updateAtOnce(GroupId group);
    // After the last updateAtOnce(): visits beside weights that stream, held uploads, and the
    // norm of the step, for the record.
    void endAtOnce();
    // Leaves late parts to the next step.
    void leavePending(Carry& out) const;

private:
    void listHostTiles(GroupId group);
    void updateBehindBackward(GroupId group);
    void updateStaying(GroupId group);
    void updateTiles(std::size_t firstHost, std::size_t firstVisit);
    bool holdsUploads(GroupId group) const;
    void uploadHeld(const HostTile& tile);

    PlanWriter& m_writer;
    const StepLayout& m_layout;
    GradientEmitter& m_gradients;
    UpdateEmitter& m_updates;
    StreamEmitter& m_stream;
    VisitEmitter m_visits;
};

} // namespace mr
