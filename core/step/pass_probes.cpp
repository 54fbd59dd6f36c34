// The passes of PassTasks through layers whose weights are moved both ways.

#include "core/step/pass_tasks.h"

namespace mr {

Status PassTasks::forwardBothWays(const Task& task, const StepInputs& inputs, Stream& stream)
{
    if (task.group.value == 0 && task.micro.value == 0)
        MR_TRY(m_memory.tokenRows.place(stream));
    MR_TRY(m_probes.move(task, inputs, stream));
    for (const int copy : {0, 1}) {
        MR_TRY(forwardMoved(task, copy, stream));
        if (task.group.value + 1 == m_memory.groupCount())
            MR_TRY(m_probes.keepLosses(task, copy, stream));
    }
    return {};
}

// Each copy has activations between layers of its own. The losses that a step tells of are those of
// the second one.
Status PassTasks::forwardMoved(const Task& task, int copy, Stream& stream)
{
    LayerContext context = contextOf(task, stream);
    const std::int64_t layer = task.group.value;
    const std::int64_t slot = slotOf(task) + copy * m_memory.slotCount();
    const BoundaryMemory& boundaries = m_memory.boundaries();
    context.shared = &m_memory.shared(slot);
    if (layer == 0)
        return embed(context, m_memory.movedEmbedding(copy), m_memory.movedInputs(copy),
            boundaries.of(slot, 0));
    const LayerInput input{boundaries.of(slot, layer - 1), {}, {}};
    if (layer + 1 == m_memory.groupCount())
        return forwardHead(context, m_memory.movedHead(copy), input, m_memory.head,
            m_memory.scalars.losses, task.micro.value);
    return forwardBlock(context, m_memory.movedBlock(task.group, copy), input,
        boundaries.of(slot, layer), m_memory.activations().of(slotOf(task), layer - 1),
        m_memory.scratchOf(layer - 1));
}

} // namespace mr
