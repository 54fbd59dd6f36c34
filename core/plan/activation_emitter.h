// ActivationEmitter: activations of blocks that the host keeps, so that backward need not make them
// again: copied there behind forward, and back ahead of backward.
//
// Threads    One owner.
// Ownership  The writer is lent.

#pragma once

#include "core/plan/plan_writer.h"
#include "core/plan/step_layout.h"

#include <optional>
#include <vector>

namespace mr {

class ActivationEmitter
{
public:
    explicit ActivationEmitter(PlanWriter& writer)
        : m_writer(writer)
    {
    }

    void begin(const StepLayout& layout);

    // Are the group's activations in one of several places?
    bool takesTurns(GroupId group) const;
    // What the work must wait for: its activations, or that a copy from their place is over.
    std::optional<Wait> bring(const Task& work);
    void leave(const Task& work, Wait done);

private:
    // A place on the device.
    struct Set {
        std::optional<Wait> save; // the last from here
        std::optional<Wait> user; // a layer, the last
    };

    Set& setOf(const Task& task);
    std::optional<Wait>& savedOf(const Task& task);
    Wait move(TaskKind kind, Lane lane, const Task& work);

    PlanWriter& m_writer;
    std::vector<Set> m_sets;
    std::vector<std::optional<Wait>> m_saved; // the copies on the host
};

} // namespace mr
