// What a run leaves when it stops within a window: saved, restored, or applied for the final
// export.

#include "core/step/step_executor.h"
#include "core/step/window_steps.h"

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

WindowState WindowTasks::capture() const
{
    WindowState saved = state;
    saved.step = *m_memory.hostScalars.scalars.as<const StepScalars>();
    if (m_window.hostUrgentScalars)
        std::memcpy(&saved.urgent, m_window.hostUrgentScalars, sizeof saved.urgent);
    return saved;
}

void WindowTasks::restore(const WindowState& saved, const Carry& carry)
{
    state = saved;
    std::memcpy(m_memory.hostScalars.scalars.data, &saved.step, sizeof saved.step);
    if (m_window.hostUrgentScalars)
        std::memcpy(m_window.hostUrgentScalars, &saved.urgent, sizeof saved.urgent);
    if (!carry.hostJob)
        return;
    const auto& tiles = m_window.layout().tiles;
    const int bank = static_cast<int>(carry.hostJob->window % m_window.layout().banks);
    for (std::size_t t = 0; t < static_cast<std::size_t>(carry.hostJob->tilesDone); ++t) {
        const ComplementRows all = rowsOf(tiles[t], bank, 0); // of which only the master is written
        const std::size_t atOnce = pieceRows(all.cols);
        for (std::size_t first = 0; first < all.rows; first += atOnce)
            unpackWeights(rowsFrom(all, first, std::min(atOnce, all.rows - first)));
    }
}

Status WindowTasks::closeOnHost(
    const CloseWindow& window, const AdamwFactors& factors, std::size_t firstTile, int bank)
{
    WindowWork work;
    if (firstTile == 0) {
        work.what = window;
        (void)work.open(); // it is closed then: it has no pieces
    }
    const auto& tiles = m_window.layout().tiles;
    for (std::size_t t = firstTile; t < tiles.size(); ++t) {
        const ComplementTile& tile = tiles[t];
        const WeightCut& slot =
            m_window.cut(tile.group).weights[static_cast<std::size_t>(tile.slot)];
        MR_TRY(openRow(tile.group, slot, (tile.firstElement - slot.first) / slot.cols));
        UpdateTile update;
        update.rows = rowsOf(tile, bank, 0);
        update.bank = window.bank;
        update.factors = factors;
        work.what = update;
        runAll(work);
    }
    return {};
}

// The sum of a window comes to its bank as the next step would send it.
Status WindowTasks::fetchSums(int bank, Stream& stream, const Copy& copy, const Finish& finish)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const GroupId id{g};
        if (m_window.cut(id).packed == 0)
            continue;
        MR_TRY(roundSum(id, stream));
        MR_TRY(finish(stream));
        MR_TRY(
            copy(m_window.bank(id, bank), m_window.packed(id).data, m_window.bankBytes(id), false));
        WindowWork work;
        work.what = normOf(id, bank);
        runAll(work);
    }
    return {};
}

Status WindowTasks::applyPending(const Carry& carry, const StepInputs& inputs, Stream& stream,
    const Copy& copy, const Finish& finish)
{
    const int banks = m_window.layout().banks;
    StepPlan last; // as if its window were closed beside the next
    last.step = carry.step + 1;
    last.answers.emplace_back().windowSteps = m_window.layout().steps;
    const bool isFirst = carry.stepsIntoWindow == 0;
    Task task;
    task.version = carry.step;
    if (carry.landed) {
        task.kind = TaskKind::AccumulateOnHost;
        task.slot = static_cast<std::uint8_t>((carry.window - (isFirst ? 1 : 0)) % banks);
        task.micro = MicroBatch{(isFirst ? m_window.layout().steps : carry.stepsIntoWindow) - 1};
        for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
            task.group = GroupId{g};
            WindowWork work;
            MR_TRY(makeWork(last, task, inputs, work));
            runAll(work);
        }
    }
    if (carry.hostJob) {
        task.slot = static_cast<std::uint8_t>(carry.hostJob->window % banks);
        if (!carry.hostJob->sent)
            MR_TRY(fetchSums(task.slot, stream, copy, finish));
        MR_TRY(closeOnHost(closing(last, task, inputs), inputs.job,
            static_cast<std::size_t>(carry.hostJob->tilesDone), task.slot));
    }
    if (isFirst)
        return {};
    task.slot = static_cast<std::uint8_t>(carry.window % banks);
    if (m_window.layout().onDevice)
        MR_TRY(fetchSums(task.slot, stream, copy, finish));
    last.answers.front().windowSteps = carry.stepsIntoWindow;
    if (m_window.layout().hasNorm && carry.stepsIntoWindow > 1) {
        MR_TRY(joinUrgent(stream));
        MR_TRY(finish(stream));
        MR_TRY(copy(
            m_window.hostUrgentScalars, m_window.urgentScalars().data, kSentWindowBytes, false));
    }
    return closeOnHost(closing(last, task, inputs), inputs.closing, 0, task.slot);
}

} // namespace mr
