#include "core/plan/activation_emitter.h"

namespace mr {

void ActivationEmitter::begin(const StepLayout& layout)
{
    if (m_writer.isTraining()) // an evaluation keeps none
        m_writer.plan().activations = layout.activations;
}

bool ActivationEmitter::isKept(const Task& work) const
{
    const int head = m_writer.terms().layers() - 1;
    return work.group.value > 0 && work.group.value < head &&
           m_writer.plan().keepsActivations(work);
}

void ActivationEmitter::move(TaskKind kind, Lane lane, const Task& work)
{
    Task task = m_writer.make(kind, lane, work.group);
    task.micro = work.micro;
    m_writer.emit(task);
}

void ActivationEmitter::bring(const Task& work)
{
    if (work.kind == TaskKind::Backward && isKept(work))
        move(TaskKind::LoadActivations, Lane::CopyIn, work);
}

void ActivationEmitter::leave(const Task& work)
{
    if (work.kind == TaskKind::Forward && isKept(work))
        move(TaskKind::SaveActivations, Lane::CopyOut, work);
}

} // namespace mr
