// PlanWriter: the plan that is being built, and the waits of its tasks.
//
// A task waits for the last users of its places (PlaceBook) and for the tasks its emitter names;
// the writer leaves out waits that the order of the lane or another wait implies. It also knows
// where each group is on its way through the step, because emitters meet there.
//
// Threads    One owner.
// Ownership  Terms are lent for life, the plan from one begin() to the next.
// Order      begin, then for each task: make, any number of waits, emit.

#pragma once

#include "core/plan/disk_cuts.h"
#include "core/plan/place_book.h"
#include "core/plan/plan_terms.h"
#include "core/plan/task_clocks.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace mr {

// Where a group is on its way through the step.
struct GroupState {
    HostCuts cuts;
    std::int64_t sentFirst = 0;   // the host gets gradients from here on
    bool stateVisits = false;     // the device updates its part with state fetched from the host
    std::optional<Wait> upload;   // the last
    std::optional<Wait> reader;   // last reader of the weights
    std::optional<Wait> finished; // its gradient
    std::optional<Wait> gradient; // sent to the host
};

class PlanWriter
{
public:
    explicit PlanWriter(const PlanTerms& terms)
        : m_terms(terms)
    {
    }

    // Empties the plan. Keeps a copy of `in`, so that `in` may be part of the step being built.
    void begin(StepIndex step, const Carry& in, StepPlan& plan);

    const PlanTerms& terms() const noexcept { return m_terms; }
    StepPlan& plan() noexcept { return *m_plan; }
    const Carry& in() const noexcept { return m_in; }
    bool isTraining() const noexcept { return m_plan->step != m_in.step; }
    std::vector<GroupState>& groups() noexcept { return m_groups; }
    GroupState& group(GroupId group) { return m_groups[static_cast<std::size_t>(group.value)]; }

    // A task about the whole group, if there is one.
    Task make(TaskKind kind, Lane lane, GroupId group, StepIndex version) const;
    Task make(TaskKind kind, Lane lane, GroupId group) const
    {
        return make(kind, lane, group, m_plan->step);
    }
    // Adds a wait to the task that is emitted next.
    void waitFor(std::optional<Wait> wait);
    void waitForCompute(); // all that was emitted to that lane
    // Waits for tasks that an earlier step left running and that are about the group, or about
    // none. For no group: for all but those of weights that stream, because their fetch waits.
    void waitForCarried(GroupId group);
    Wait emit(const Task& task);

private:
    const PlanTerms& m_terms;
    StepPlan* m_plan = nullptr;
    Carry m_in;
    TaskClocks m_clocks;
    PlaceBook m_places;
    std::vector<Wait> m_candidates;
    std::vector<GroupState> m_groups;
};

} // namespace mr
