#include "core/plan/boundary_emitter.h"

namespace mr {

void BoundaryEmitter::begin(const StepLayout& layout)
{
    m_layout = &layout;
    StepPlan& plan = m_writer.plan();
    plan.savesBoundaries = layout.savesBoundaries;
    m_slots.clear();
    m_saved.clear();
    if (!layout.savesBoundaries)
        return;
    const auto inFlight = static_cast<std::size_t>(plan.inFlight);
    m_slots.resize(2 * inFlight);
    m_saved.resize(static_cast<std::size_t>(m_writer.terms().layers()) * inFlight);
    if (m_writer.isTraining()) // an evaluation saves none
        m_disk.openBoundaryStages(layout.boundaries.stages);
}

// Backward reads the last two while they are still there.
bool BoundaryEmitter::isSaved(int boundary) const
{
    return m_writer.isTraining() && boundary + 2 < m_writer.terms().layers() - 1;
}

BoundaryEmitter::Slot& BoundaryEmitter::slotOf(int boundary, MicroBatch micro)
{
    const int inFlight = m_writer.plan().inFlight;
    return m_slots[static_cast<std::size_t>(2 * (micro.value % inFlight) + boundary % 2)];
}

std::optional<Wait>& BoundaryEmitter::savedOf(int boundary, MicroBatch micro)
{
    const int slot = micro.value % m_writer.plan().inFlight;
    return m_saved[static_cast<std::size_t>(m_writer.terms().layers() * slot + boundary)];
}

bool BoundaryEmitter::isOnDisk(int boundary, MicroBatch micro) const
{
    return m_layout->boundaries.tileOf(boundary, micro.value % m_writer.plan().inFlight) >= 0;
}

Task BoundaryEmitter::make(TaskKind kind, Lane lane, int boundary, MicroBatch micro) const
{
    Task task = m_writer.make(kind, lane, GroupId{boundary});
    task.micro = micro;
    task.elementCount = 0;
    return task;
}

std::optional<Wait> BoundaryEmitter::bring(const WorkItem& item)
{
    const int layer = item.layer.value;
    const bool isHead = layer == m_writer.terms().layers() - 1;
    if (item.pass == WorkItem::Pass::Forward)
        return isHead ? std::nullopt : slotOf(layer, item.micro).save;
    if (layer == 0 || !isSaved(layer - 1))
        return {};
    return load(layer - 1, item.micro);
}

Wait BoundaryEmitter::load(int boundary, MicroBatch micro)
{
    Task task = make(TaskKind::LoadBoundary, Lane::CopyIn, boundary, micro);
    std::optional<Wait> there = savedOf(boundary, micro);
    const bool onDisk = isOnDisk(boundary, micro);
    if (onDisk)
        there = m_disk.readBoundary(task, there);
    m_writer.waitFor(slotOf(boundary, micro).reader);
    m_writer.waitFor(there);
    const Wait loaded = m_writer.emit(task);
    if (onDisk)
        m_disk.stageOf(task).copy = loaded;
    return loaded;
}

void BoundaryEmitter::leave(const WorkItem& item, Wait done)
{
    const int layer = item.layer.value;
    if (layer > 0)
        slotOf(layer - 1, item.micro).reader = done;
    if (item.pass == WorkItem::Pass::Backward || layer == m_writer.terms().layers() - 1)
        return;
    slotOf(layer, item.micro).reader = done;
    if (isSaved(layer))
        save(layer, item.micro, done);
}

void BoundaryEmitter::save(int boundary, MicroBatch micro, Wait written)
{
    Task task = make(TaskKind::SaveBoundary, Lane::CopyOut, boundary, micro);
    const bool onDisk = isOnDisk(boundary, micro);
    if (onDisk) {
        task.stage = m_disk.nextBoundaryStage();
        m_writer.waitFor(m_disk.stageOf(task).disk);
        m_writer.waitFor(m_disk.stageOf(task).copy);
    }
    m_writer.waitFor(written);
    const Wait saved = m_writer.emit(task);
    slotOf(boundary, micro).save = saved;
    savedOf(boundary, micro) = onDisk ? m_disk.writeBoundary(task, saved) : saved;
}

} // namespace mr
