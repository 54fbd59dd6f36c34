#include "core/plan/activation_emitter.h"

namespace mr {

void ActivationEmitter::begin(const StepLayout& layout)
{
    StepPlan& plan = m_writer.plan();
    m_sets.clear();
    m_saved.clear();
    if (!m_writer.isTraining() || layout.activations.sets <= 1)
        return; // an evaluation keeps none
    plan.activations = layout.activations;
    m_sets.resize(static_cast<std::size_t>(layout.activations.sets));
    m_saved.resize(static_cast<std::size_t>(m_writer.terms().layers()) *
                   static_cast<std::size_t>(plan.inFlight));
}

bool ActivationEmitter::takesTurns(GroupId group) const
{
    return !m_sets.empty() && group.value > 0 && group.value < m_writer.terms().layers() - 1;
}

ActivationEmitter::Set& ActivationEmitter::setOf(const Task& task)
{
    return m_sets[static_cast<std::size_t>(m_writer.plan().activationSet(task))];
}

std::optional<Wait>& ActivationEmitter::savedOf(const Task& task)
{
    const int slot = task.micro.value % m_writer.plan().inFlight;
    return m_saved[static_cast<std::size_t>(m_writer.terms().layers() * slot + task.group.value)];
}

Wait ActivationEmitter::move(TaskKind kind, Lane lane, const Task& work)
{
    Task task = m_writer.make(kind, lane, work.group);
    task.micro = work.micro;
    return m_writer.emit(task);
}

std::optional<Wait> ActivationEmitter::bring(const Task& work)
{
    Set& set = setOf(work);
    if (work.kind == TaskKind::Forward || !m_writer.plan().keepsActivations(work))
        return set.save;
    m_writer.waitFor(set.user);
    m_writer.waitFor(set.save);
    m_writer.waitFor(savedOf(work));
    return move(TaskKind::LoadActivations, Lane::CopyIn, work);
}

void ActivationEmitter::leave(const Task& work, Wait done)
{
    Set& set = setOf(work);
    set.user = done;
    if (work.kind != TaskKind::Forward || !m_writer.plan().keepsActivations(work))
        return;
    m_writer.waitFor(done);
    set.save = savedOf(work) = move(TaskKind::SaveActivations, Lane::CopyOut, work);
}

} // namespace mr
