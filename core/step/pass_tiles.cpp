// The parts of PassTasks for an embedding and a head whose home is the host.

#include "core/step/pass_tasks.h"

namespace mr {

// The first tile, which has the norm, begins the head's work with a micro-batch.
Status PassTasks::forwardTile(const Task& task, const LayerContext& context)
{
    const VocabularyTiles& tiles = m_memory.vocabulary();
    const int index = tiles.indexOf(task.firstElement, task.elementCount).value_or(0);
    const HeadScratch scratch = m_memory.headOf(slotOf(task));
    if (index == 0)
        MR_TRY(beginHead(context, m_memory.headNorm(task), inputOf(task), scratch));
    MR_TRY(softmaxOfTile(context, m_memory.headTile(task, tiles.at(index)), scratch));
    if (index + 1 < tiles.count())
        return {};
    return joinHead(context, scratch, m_memory.scalars.losses, task.micro.value);
}

Status PassTasks::backwardTile(
    const Task& task, const LayerContext& context, const HeadBackward& backward)
{
    const VocabularyTiles& tiles = m_memory.vocabulary();
    const int index = tiles.indexOf(task.firstElement, task.elementCount).value_or(0);
    const HeadScratch scratch = m_memory.headOf(slotOf(task));
    MR_TRY(gradientsOfTile(context, m_memory.headTile(task, tiles.at(index)), scratch, backward));
    if (index > 0)
        return {};
    return endHead(context, m_memory.headNorm(task), inputOf(task), scratch, backward);
}

// The host's plane is pinned, so the device reads the rows where they are.
Status PassTasks::fetchRows(const Task& task, Stream& stream)
{
    const VocabularyShape& shape = m_memory.vocabulary().shape;
    const TensorView out = m_memory.boundaries().of(slotOf(task), 0);
    const auto buffer = static_cast<std::size_t>(task.micro.value) % m_memory.batches.size();
    std::byte* rows = m_memory.hostState(task.group, StatePart::High, 0, -1);
    m_traffic.toDevice += static_cast<std::int64_t>(out.bytes());
    return m_device.ops().embed(
        {m_memory.batches[buffer].ids, matrixView(rows, m_memory.compute(), shape.rows, shape.cols),
            out, embeddingScale()},
        stream);
}

} // namespace mr
