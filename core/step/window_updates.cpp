// What the host does in windows, as work for the update pool; and the counts of updates.

#include "core/step/step_executor.h"
#include "core/step/window_steps.h"

#include <algorithm>
#include <utility>

namespace mr {

// The state alone: sums are those of a bank.
ComplementRows WindowTasks::stateRows(
    GroupId id, const WeightCut& slot, std::int64_t firstRow, std::int64_t count, int stage) const
{
    const std::int64_t first = slot.first + firstRow * slot.cols;
    std::array<std::byte*, kStateParts> parts{};
    for (const StatePart part : kPartsOfTile)
        if (planeOf(m_memory.stateCodec(), part).exists())
            parts[static_cast<std::size_t>(part)] = m_memory.hostState(id, part, first, stage);
    const auto at = [&](StatePart part) { return parts[static_cast<std::size_t>(part)]; };
    ComplementRows rows;
    rows.high = reinterpret_cast<std::uint16_t*>(at(StatePart::High));
    rows.rows = static_cast<std::size_t>(count);
    rows.cols = static_cast<std::size_t>(slot.cols);
    if (m_memory.stateCodec() == StateCodec::Compact) {
        rows.compact = compactRange(parts, count * slot.cols);
        return rows;
    }
    rows.low = reinterpret_cast<std::int16_t*>(at(StatePart::Low));
    rows.m = reinterpret_cast<float*>(at(StatePart::FirstMoment));
    rows.v = reinterpret_cast<float*>(at(StatePart::SecondMoment));
    return rows;
}

Status WindowTasks::openRow(GroupId id, const WeightCut& slot, std::int64_t row)
{
    const std::int64_t element = slot.first + row * slot.cols;
    const bool isOnDisk = m_memory.disk().tileOf(id, element) >= 0;
    return isOnDisk ? m_disk->openForChange(id, element) : Status();
}

// What is on disk begins with a row, and so does each of its tiles.
std::int64_t WindowTasks::rowsTogether(
    GroupId id, const WeightCut& slot, std::int64_t row, std::int64_t most) const
{
    const DiskCuts& disk = m_memory.disk();
    const std::int64_t element = slot.first + row * slot.cols;
    const std::int32_t tile = disk.tileOf(id, element);
    std::int64_t end = m_window.cut(id).diskFirst;
    if (tile >= 0) {
        const DiskRange& range = disk.tiles[static_cast<std::size_t>(tile)];
        end = range.first + range.count;
    }
    return std::min(most, (end - element + slot.cols - 1) / slot.cols);
}

ComplementRows WindowTasks::rowsOf(const ComplementTile& tile, int bank, int stage) const
{
    const WeightCut& slot = m_window.cut(tile.group).weights[static_cast<std::size_t>(tile.slot)];
    ComplementRows rows = stateRows(tile.group, slot, (tile.firstElement - slot.first) / slot.cols,
        tile.elementCount / slot.cols, stage);
    rows.sums = m_window.bank(tile.group, bank) +
                static_cast<std::size_t>(tile.packedFirst) * sizeOf(m_window.sumType());
    rows.sumType = m_window.sumType();
    rows.weightType = m_window.compute();
    rows.columns = std::as_const(m_window).hostList(tile.group, slot);
    rows.decayed = isDecayed(tile.group, slot);
    return rows;
}

CloseWindow WindowTasks::closing(const StepPlan& plan, const Task& task, const StepInputs& inputs)
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

SquareSum WindowTasks::normOf(GroupId id, int bank) const
{
    SquareSum norm;
    norm.sum = m_window.bank(id, bank);
    norm.type = m_window.sumType();
    norm.count = static_cast<std::size_t>(m_window.cut(id).packed);
    norm.normBlocks = m_window.group(id).normBlocks;
    return norm;
}

Status WindowTasks::makeWork(
    const StepPlan& plan, const Task& task, const StepInputs& inputs, WindowWork& work)
{
    if (task.kind == TaskKind::AccumulateOnHost) {
        const WindowGroup& group = m_window.group(task.group);
        AddGradient add;
        add.sum = reinterpret_cast<float*>(m_window.bank(task.group, task.slot));
        add.gradient = group.landed;
        add.type = m_window.compute();
        add.count = static_cast<std::size_t>(m_window.cut(task.group).packed);
        add.isFirst = task.micro.value == 0;
        add.scalars = m_memory.hostScalars.scalars.as<const StepScalars>();
        add.normBlocks = group.normBlocks;
        work.what = add;
        return {};
    }
    if (task.kind == TaskKind::NormPart) {
        work.what = normOf(task.group, task.slot);
        return {};
    }
    if (task.kind == TaskKind::JoinNorm) {
        work.what = closing(plan, task, inputs);
        return {};
    }
    if (task.kind != TaskKind::UpdateOnHost)
        return Status::error(ErrorKind::Internal, "window tasks: no work of the host");
    UpdateTile update;
    update.rows =
        rowsOf(tileAt(m_window.layout(), task.group, task.firstElement), task.slot, task.stage);
    update.bank = &state.banks[task.slot];
    update.factors = task.version == plan.step ? inputs.closing : inputs.job;
    work.what = update;
    return {};
}

void WindowTasks::finishStep(const StepPlan& plan, const StepScalars& scalars)
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
