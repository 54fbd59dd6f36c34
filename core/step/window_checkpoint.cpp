#include "core/step/window_checkpoint.h"

#include <algorithm>
#include <cstring>

namespace mr {
namespace {

void runAll(WindowWork& work)
{
    const std::size_t pieces = work.open();
    for (std::size_t piece = 0; piece < pieces; ++piece)
        work.run(piece);
}

} // namespace

WindowCheckpoint::WindowCheckpoint(RunMemory& memory, const HostRows& rows, WindowSteps& steps,
    WindowUpdates& updates, BlockingCopier& copier, Stream& stream)
    : m_memory(memory)
    , m_window(*memory.window)
    , m_rows(rows)
    , m_steps(steps)
    , m_updates(updates)
    , m_copier(copier)
    , m_stream(stream)
{
}

WindowState WindowCheckpoint::capture() const
{
    WindowState saved = m_updates.state;
    saved.step = *m_memory.hostScalars.scalars.as<const StepScalars>();
    if (m_window.hostUrgentScalars)
        std::memcpy(&saved.urgent, m_window.hostUrgentScalars, sizeof saved.urgent);
    return saved;
}

void WindowCheckpoint::restore(const WindowState& saved, const Carry& carry)
{
    m_updates.state = saved;
    std::memcpy(m_memory.hostScalars.scalars.data, &saved.step, sizeof saved.step);
    if (m_window.hostUrgentScalars)
        std::memcpy(m_window.hostUrgentScalars, &saved.urgent, sizeof saved.urgent);
    if (!carry.hostJob)
        return;
    const auto& tiles = m_window.layout().tiles;
    const int bank = static_cast<int>(carry.hostJob->window % m_window.layout().banks);
    for (std::size_t t = 0; t < static_cast<std::size_t>(carry.hostJob->tilesDone); ++t) {
        // Only the master of these is written.
        const ComplementRows all = m_updates.updateOf(tiles[t], bank, 0).rows;
        const std::size_t atOnce = pieceRows(all.cols);
        for (std::size_t first = 0; first < all.rows; first += atOnce)
            unpackWeights(rowsFrom(all, first, std::min(atOnce, all.rows - first)));
    }
}

Status WindowCheckpoint::applyPending(const Carry& carry, const StepInputs& inputs)
{
    const WindowLayout& layout = m_window.layout();
    StepPlan last; // as if its window were closed beside the next
    last.step = carry.step + 1;
    last.answers.emplace_back().windowSteps = layout.steps;
    const bool isFirst = carry.stepsIntoWindow == 0;
    Task task;
    task.version = carry.step;
    if (carry.landed) {
        task.slot = bankOf(carry.window - (isFirst ? 1 : 0));
        task.micro = MicroBatch{(isFirst ? layout.steps : carry.stepsIntoWindow) - 1};
        MR_TRY(addLanded(last, task, inputs));
    }
    if (carry.hostJob) {
        task.slot = bankOf(carry.hostJob->window);
        if (!carry.hostJob->sent)
            MR_TRY(fetchSums(last, task, inputs));
        const auto done = static_cast<std::size_t>(carry.hostJob->tilesDone);
        MR_TRY(close(last, task, inputs, done));
    }
    if (isFirst)
        return {};
    task.slot = bankOf(carry.window);
    if (layout.onDevice)
        MR_TRY(fetchSums(last, task, inputs));
    last.answers.front().windowSteps = carry.stepsIntoWindow;
    if (layout.hasNorm && carry.stepsIntoWindow > 1)
        MR_TRY(fetchUrgentNorm(inputs));
    StepInputs ofTheNext = inputs;
    ofTheNext.job = inputs.closing;
    return close(last, task, ofTheNext, 0);
}

std::uint8_t WindowCheckpoint::bankOf(std::int64_t window) const noexcept
{
    return static_cast<std::uint8_t>(window % m_window.layout().banks);
}

// The last step's gradients, which the next would add to the sums.
Status WindowCheckpoint::addLanded(const StepPlan& plan, Task task, const StepInputs& inputs)
{
    task.kind = TaskKind::AccumulateOnHost;
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        task.group = GroupId{g};
        MR_TRY(runOnHost(plan, task, inputs));
    }
    return {};
}

// The sum of a window comes to its bank as the next step would send it.
Status WindowCheckpoint::fetchSums(const StepPlan& plan, Task task, const StepInputs& inputs)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        task.group = GroupId{g};
        if (m_window.cut(task.group).packed == 0)
            continue;
        task.kind = TaskKind::FinishGradient;
        MR_TRY(m_steps.enqueue(task, inputs, m_stream));
        MR_TRY(m_copier.finish(m_stream));
        MR_TRY(
            m_copier.toHost({m_window.bank(task.group, task.slot), m_window.bankBytes(task.group)},
                m_window.packed(task.group).data));
        task.kind = TaskKind::NormPart;
        MR_TRY(runOnHost(plan, task, inputs));
    }
    return {};
}

Status WindowCheckpoint::fetchUrgentNorm(const StepInputs& inputs)
{
    Task task;
    task.kind = TaskKind::JoinNorm;
    MR_TRY(m_steps.enqueue(task, inputs, m_stream));
    MR_TRY(m_copier.finish(m_stream));
    return m_copier.toHost(
        {m_window.hostUrgentScalars, kSentWindowBytes}, m_window.urgentScalars().data);
}

// Closes the window of the task's bank. Tiles before `firstTile` are updated already.
Status WindowCheckpoint::close(
    const StepPlan& plan, Task task, const StepInputs& inputs, std::size_t firstTile)
{
    if (firstTile == 0) {
        task.kind = TaskKind::JoinNorm;
        MR_TRY(runOnHost(plan, task, inputs));
    }
    const auto& tiles = m_window.layout().tiles;
    for (std::size_t t = firstTile; t < tiles.size(); ++t) {
        const ComplementTile& tile = tiles[t];
        const WeightCut& slot =
            m_window.cut(tile.group).weights[static_cast<std::size_t>(tile.slot)];
        MR_TRY(m_rows.open(tile.group, slot, (tile.firstElement - slot.first) / slot.cols));
        task.kind = TaskKind::UpdateOnHost;
        task.group = tile.group;
        task.firstElement = tile.firstElement;
        task.stage = 0; // where it was opened
        MR_TRY(runOnHost(plan, task, inputs));
    }
    return {};
}

Status WindowCheckpoint::runOnHost(const StepPlan& plan, const Task& task, const StepInputs& inputs)
{
    WindowWork work;
    MR_TRY(m_updates.makeWork(plan, task, inputs, work));
    runAll(work);
    return {};
}

} // namespace mr
