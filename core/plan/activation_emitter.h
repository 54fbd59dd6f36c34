// ActivationEmitter: activations of blocks that the host keeps, so that backward need not make them
// again: copied there behind forward, and back ahead of backward.
//
// Threads    One owner.
// Ownership  The writer is lent.

#pragma once

#include "core/plan/plan_writer.h"
#include "core/plan/step_layout.h"

namespace mr {

class ActivationEmitter
{
public:
    explicit ActivationEmitter(PlanWriter& writer)
        : m_writer(writer)
    {
    }

    void begin(const StepLayout& layout);

    // Before the work: its activations come, if the host keeps them.
    void bring(const Task& work);
    // Behind it: they go there.
    void leave(const Task& work);

private:
    bool isKept(const Task& work) const;
    void move(TaskKind kind, Lane lane, const Task& work);

    PlanWriter& m_writer;
};

} // namespace mr
