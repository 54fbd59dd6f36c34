#include "core/step/window_updates.h"

namespace mr {

WindowUpdates::WindowUpdates(const RunMemory& memory, const ParamTable& table, const HostRows& rows)
    : m_memory(memory)
    , m_window(*memory.window)
    , m_table(table)
    , m_rows(rows)
{
}

ComplementRows WindowUpdates::rowsOf(const ComplementTile& tile, int bank, int stage) const
{
    const WeightCut& slot = m_window.cut(tile.group).weights[static_cast<std::size_t>(tile.slot)];
    ComplementRows rows = m_rows.of(tile.group, slot, (tile.firstElement - slot.first) / slot.cols,
        tile.elementCount / slot.cols, stage);
    rows.sums = m_window.bank(tile.group, bank) +
                static_cast<std::size_t>(tile.packedFirst) * sizeOf(m_window.sumType());
    rows.sumType = m_window.sumType();
    rows.weightType = m_window.compute();
    rows.columns = m_window.hostList(tile.group, slot);
    rows.decayed = m_table.slotAt(tile.group, slot.first).decayed;
    return rows;
}

CloseWindow WindowUpdates::closing(const StepPlan& plan, const Task& task, const StepInputs& inputs)
{
    CloseWindow window;
    window.bank = &state.banks[task.slot];
    window.scalars = m_memory.hostScalars.scalars.as<const StepScalars>();
    // Beside the next window the last step is counted already; in the step itself it is not.
    window.addsLast = task.version == plan.step;
    const bool isFresh = window.addsLast && plan.window.before == 0;
    window.before = isFresh ? 0 : window.bank->gradients;
    const int steps = window.addsLast ? plan.window.before + 1 : plan.answers.front().windowSteps;
    window.isOneStep = steps == 1;
    if (m_window.layout().hasNorm && !window.isOneStep) {
        window.urgent = reinterpret_cast<const StepScalars*>(m_window.hostUrgentScalars);
        window.normBlocks = m_window.hostNormBlocks;
        window.clipNorm = inputs.clipNorm;
    }
    return window;
}

SquareSum WindowUpdates::normOf(GroupId id, int bank) const
{
    SquareSum norm;
    norm.sum = m_window.bank(id, bank);
    norm.type = m_window.sumType();
    norm.count = static_cast<std::size_t>(m_window.cut(id).packed);
    norm.normBlocks = m_window.group(id).normBlocks;
    return norm;
}

AddGradient WindowUpdates::sumOf(const Task& task) const
{
    const WindowGroup& group = m_window.group(task.group);
    AddGradient add;
    add.sum = reinterpret_cast<float*>(m_window.bank(task.group, task.slot));
    add.gradient = group.landed;
    add.type = m_window.compute();
    add.count = static_cast<std::size_t>(m_window.cut(task.group).packed);
    add.isFirst = task.micro.value == 0;
    add.scalars = m_memory.hostScalars.scalars.as<const StepScalars>();
    add.normBlocks = group.normBlocks;
    return add;
}

UpdateTile WindowUpdates::updateOf(const ComplementTile& tile, int bank, int stage)
{
    UpdateTile update;
    update.rows = rowsOf(tile, bank, stage);
    update.bank = &state.banks[static_cast<std::size_t>(bank)];
    return update;
}

Status WindowUpdates::makeWork(
    const StepPlan& plan, const Task& task, const StepInputs& inputs, WindowWork& work)
{
    switch (task.kind) {
    case TaskKind::AccumulateOnHost:
        work.what = sumOf(task);
        return {};
    case TaskKind::NormPart:
        work.what = normOf(task.group, task.slot);
        return {};
    case TaskKind::JoinNorm:
        work.what = closing(plan, task, inputs);
        return {};
    case TaskKind::UpdateOnHost: {
        UpdateTile update = updateOf(
            tileAt(m_window.layout(), task.group, task.firstElement), task.slot, task.stage);
        update.factors = task.version == plan.step ? inputs.closing : inputs.job;
        work.what = update;
        return {};
    }
    default:
        return Status::error(ErrorKind::Internal, "window tasks: no work of the host");
    }
}

void WindowUpdates::finishStep(const StepPlan& plan, const StepScalars& scalars)
{
    if (plan.window.before < 0)
        return; // an evaluation
    const int good = scalars.finite != 0 ? 1 : 0;
    WindowBank& bank = state.banks[static_cast<std::size_t>(plan.window.bank)];
    bank.gradients = (plan.window.before == 0 ? 0 : bank.gradients) + good;
    state.deviceUpdates += good;
    const auto& tiles = m_window.layout().tiles;
    if (tiles.empty())
        return;
    for (const Task& task : plan.tasks)
        if (task.kind == TaskKind::UpdateOnHost && task.group == tiles.back().group &&
            task.firstElement == tiles.back().firstElement && state.banks[task.slot].applied > 0)
            state.hostUpdates += m_window.layout().stride(task.version == plan.step
                                                              ? plan.window.before + 1
                                                              : plan.answers.front().windowSteps);
}

} // namespace mr
