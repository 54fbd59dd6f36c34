#include "core/plan/boundary_emitter.h"

namespace mr {

void BoundaryEmitter::begin(const StepLayout& layout)
{
    m_layout = &layout;
    m_writer.plan().savesBoundaries = layout.savesBoundaries;
    if (layout.savesBoundaries && m_writer.isTraining()) // an evaluation saves none
        m_disk.openBoundaryStages(layout.boundaries.stages);
}

// The first backward reads the last two while they are on the device.
bool BoundaryEmitter::isStillThere(int boundary) const
{
    return boundary >= savedLayers(m_writer.terms().layers(), false) &&
           m_writer.plan().secondPass == 0;
}

// Backward reads none below the input of the first layer that is trained.
bool BoundaryEmitter::isSaved(int boundary) const
{
    const PlanTerms& terms = m_writer.terms();
    return m_writer.isTraining() && boundary < savedLayers(terms.layers(), m_layout->passesTwice) &&
           boundary + 1 >= terms.shape.firstTrained();
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

void BoundaryEmitter::bring(const WorkItem& item)
{
    const int boundary = item.layer.value - 1;
    if (item.pass == WorkItem::Pass::Forward || boundary < 0 || !isSaved(boundary) ||
        isStillThere(boundary))
        return;
    Task task = make(TaskKind::LoadBoundary, Lane::CopyIn, boundary, item.micro);
    const bool onDisk = isOnDisk(boundary, item.micro);
    if (onDisk)
        m_writer.waitFor(m_disk.readBoundary(task));
    const Wait loaded = m_writer.emit(task);
    if (onDisk)
        m_disk.stageOf(task).copy = loaded;
}

void BoundaryEmitter::leave(const WorkItem& item)
{
    const int boundary = item.layer.value;
    if (item.pass == WorkItem::Pass::Backward || !isSaved(boundary))
        return;
    Task task = make(TaskKind::SaveBoundary, Lane::CopyOut, boundary, item.micro);
    const bool onDisk = isOnDisk(boundary, item.micro);
    if (onDisk) {
        task.stage = m_disk.nextBoundaryStage();
        m_writer.waitFor(m_disk.stageOf(task).disk);
        m_writer.waitFor(m_disk.stageOf(task).copy);
    }
    const Wait saved = m_writer.emit(task);
    if (onDisk)
        m_disk.writeBoundary(task, saved);
}

} // namespace mr
