#include "core/plan/gradient_emitter.h"

namespace mr {

void GradientEmitter::finish(GroupId group)
{
    GroupState& state = m_writer.group(group);
    m_writer.waitFor(sendOfOccupant(group, m_writer.plan().gradients.finishedSlots));
    const Wait finished =
        m_writer.emit(m_writer.make(TaskKind::FinishGradient, Lane::Compute, group));
    state.finished = finished;
    Task send = m_writer.make(TaskKind::SendGradient, Lane::CopyOut, group);
    send.firstElement = state.sentFirst;
    send.elementCount = state.cuts.gradientsFirst - state.sentFirst;
    if (send.elementCount > 0) {
        m_writer.waitFor(finished);
        state.gradient = m_writer.emit(send);
    }
    m_disk.spill(group, finished);
    if (!m_isJoined)
        m_writer.emit(m_writer.make(TaskKind::NormPart, Lane::Compute, group));
}

void GradientEmitter::joinNorm()
{
    m_writer.emit(m_writer.make(TaskKind::JoinNorm, Lane::Compute, GroupId{}));
    m_isJoined = true;
}

void GradientEmitter::sendScalars()
{
    if (m_writer.isTraining() && !m_isJoined)
        joinNorm();
    m_writer.waitForCompute();
    m_scalars = m_writer.emit(m_writer.make(TaskKind::SendScalars, Lane::CopyOut, GroupId{}));
}

void GradientEmitter::sendScalars(GroupId group)
{
    if (m_isJoined)
        return;
    Task task = m_writer.make(TaskKind::JoinNorm, Lane::Compute, group);
    task.elementCount = 0;
    m_writer.waitFor(m_writer.emit(task));
    task.kind = TaskKind::SendScalars;
    task.lane = Lane::CopyOut;
    m_scalars = m_writer.emit(task);
}

// Blocks come in descending order and take turns: the one before in a slot is `slots` above, or
// further up where those are frozen and have no gradient.
std::optional<Wait> GradientEmitter::sendOfOccupant(GroupId group, int slots) const
{
    const int head = m_writer.terms().layers() - 1;
    if (slots == 0 || group.value == 0)
        return {};
    int above = group.value + slots;
    while (above < head && m_writer.terms().elements(GroupId{above}) == 0)
        above += slots;
    return above < head ? m_writer.group(GroupId{above}).gradient : std::nullopt;
}

} // namespace mr
