// Activations of blocks that the host keeps, so that backward need not make them again: copied
// there behind forward, and back ahead of backward.

#include "core/plan/plan_builder.h"

namespace mr {

// Are the block's activations in one of several places?
bool PlanBuilder::takesTurns(const StepPlan& plan, GroupId group) const
{
    return plan.activations.sets > 1 && group.value > 0 && group.value < m_shape.layers() - 1;
}

PlanBuilder::ActivationSet& PlanBuilder::activationSet(const StepPlan& plan, const Task& task)
{
    return m_activationSets[static_cast<std::size_t>(plan.activationSet(task))];
}

std::optional<Wait>& PlanBuilder::savedActivations(const StepPlan& plan, const Task& task)
{
    return m_savedActivations[static_cast<std::size_t>(
        m_shape.layers() * (task.micro.value % plan.inFlight) + task.group.value)];
}

// What the work must wait for: its activations, or that a copy from their place is over.
std::optional<Wait> PlanBuilder::bringActivations(StepPlan& plan, const Task& work)
{
    ActivationSet& set = activationSet(plan, work);
    if (work.kind == TaskKind::Forward || !plan.keepsActivations(work))
        return set.save;
    Task load = make(TaskKind::LoadActivations, Lane::CopyIn, work.group, plan.step);
    load.micro = work.micro;
    waitFor(set.user);
    waitFor(set.save);
    waitFor(savedActivations(plan, work));
    return emit(plan, load);
}

void PlanBuilder::leaveActivations(StepPlan& plan, const Task& work, Wait done)
{
    ActivationSet& set = activationSet(plan, work);
    set.user = done;
    if (work.kind != TaskKind::Forward || !plan.keepsActivations(work))
        return;
    Task save = make(TaskKind::SaveActivations, Lane::CopyOut, work.group, plan.step);
    save.micro = work.micro;
    waitFor(done);
    set.save = savedActivations(plan, work) = emit(plan, save);
}

} // namespace mr
