#include "core/run/block_turns.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {

BlockTurns::BlockTurns(RunContext& run, RunJournal& journal, RunSaver& saver, BodyMaker& maker)
    : m_run(run)
    , m_journal(journal)
    , m_saver(saver)
    , m_maker(maker)
{
}

Status BlockTurns::takeIfDue()
{
    const RunSetup& setup = m_run.setup;
    const TurnSchedule& schedule = setup.turns.schedule;
    const StepIndex next = m_run.step() + 1;
    if (!schedule.isActive() || m_run.stopRequested || next > setup.spec.steps ||
        schedule.turnOf(next) == m_run.progress.turn)
        return {};
    MR_ASSIGN(const bool isKept, m_saver.saveTurn());
    if (!isKept) {
        m_run.requestStop();
        return {};
    }
    m_journal.keepMoved();
    const std::int64_t turn = schedule.turnOf(next);
    MR_TRY(m_maker.turnTo(turn));
    const auto group = static_cast<std::size_t>(setup.turns.trained.value);
    m_journal.message(EventLevel::Info, "turn",
        fmt::format("Steps {} to {} train {}.", next,
            std::min(setup.spec.steps, (turn + 1) * schedule.steps),
            setup.shape.groups[group].name));
    m_journal.book(IntervalKind::Turn);
    return {};
}

} // namespace mr
