#include "core/run/run_saver.h"

#include "core/base/clock.h"
#include "core/choose/checkpoint_size.h"
#include "core/model/weights.h"
#include "core/run/run_model.h"
#include "core/save/run_files.h"
#include "core/save/trained_weights.h"
#include "core/step/run_master.h"
#include "core/telemetry/run_folder.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace mr {
namespace fs = std::filesystem;

RunSaver::RunSaver(RunContext& run, RunJournal& journal)
    : m_run(run)
    , m_journal(journal)
    , m_writer(run, journal)
{
}

void RunSaver::startClock()
{
    m_checkpointNs = clockNs();
}

void RunSaver::noteLoaded(bool fromCheckpoint) noexcept
{
    m_savedStep = fromCheckpoint ? m_run.step() : -1;
}

bool RunSaver::isCheckpointDue() const
{
    const RunSpec& spec = m_run.setup.spec;
    const StepIndex done = m_run.progress.step;
    if (done == 0 || done >= spec.steps || m_savedStep == done || m_writer.passedStep() == done)
        return false;
    return (spec.checkpointEvery > 0 && done % spec.checkpointEvery == 0) ||
           (spec.keepBest && isBestSoFar()) || isDueByTime();
}

// Where a step was just evaluated the next step is taken instead, unless every step is evaluated:
// else chance would decide whether a run keeps one checkpoint more as its best, and its plan would
// have to reserve room for it.
bool RunSaver::isDueByTime() const
{
    constexpr std::int64_t kNsPerMinute = 60'000'000'000;
    const RunSpec& spec = m_run.setup.spec;
    if (spec.checkpointMinutes == 0 ||
        (std::isfinite(m_run.progress.evalLoss) && spec.evalEvery != 1))
        return false;
    return clockNs() - m_checkpointNs >= spec.checkpointMinutes * kNsPerMinute;
}

std::int64_t RunSaver::clockNs() const
{
    return m_run.hooks.checkpointClock ? m_run.hooks.checkpointClock() : nowNs();
}

// Compares with the evaluations that have a checkpoint: the disk decides, so a run that was killed
// decides alike.
bool RunSaver::isBestSoFar() const
{
    const double best = bestEvalLoss(m_run.runDir, m_run.saveDir);
    return std::isfinite(m_run.progress.evalLoss) &&
           (std::isnan(best) || m_run.progress.evalLoss < best);
}

Status RunSaver::saveCheckpoint(IfUnwritable then)
{
    MR_TRY(m_journal.finishLateParts());
    m_run.progress.activeMs = m_run.activeMs();
    m_run.progress.carry = m_run.body->plans().carry();
    // A run that is killed, or loses its power, goes on from the checkpoint: the records up to it
    // must be on the disk before it. A history that fails was reported, and is no reason to lose
    // the checkpoint.
    m_journal.flush();
    const Status saved = m_writer.save(
        {false, checkpointBytes(m_run.setup), [this] { return writeCheckpointNow(); }}, then,
        m_savedStep);
    m_journal.book(IntervalKind::Checkpoint);
    m_checkpointNs = clockNs(); // also of one that was passed: no try at every step
    return saved;
}

Status RunSaver::writeCheckpointNow()
{
    const std::int64_t begin = nowNs();
    auto written = writeCheckpoint(m_run.checkpoint(), m_run.saveDir, m_run.progress);
    MR_TRY(written.status());
    m_run.watch.saved(1e-9 * static_cast<double>(nowNs() - begin));
    CheckpointRow row;
    row.step = m_run.progress.step;
    row.path = written.value().path.string();
    row.bytes = static_cast<std::int64_t>(written.value().bytes);
    row.state = "complete";
    row.createdMs = wallClockMs();
    row.writeMs = (nowNs() - begin) / 1'000'000;
    row.evalLoss = m_run.progress.evalLoss;
    m_savedStep = m_run.progress.step; // even if its row fails
    m_journal.recorder().checkpoint(row, written.value().manifestHash);
    m_journal.message(EventLevel::Info, "checkpoint",
        fmt::format("Checkpoint of step {} written.", m_run.progress.step));
    prune();
    m_journal.flush();
    m_writer.noteFolder();
    if (m_run.hooks.onCheckpoint)
        m_run.hooks.onCheckpoint(written.value(), m_run.progress);
    return {};
}

void RunSaver::prune()
{
    const Pruned pruned =
        pruneCheckpoints(m_run.runDir, m_run.setup.spec.keepCheckpoints, m_run.saveDir);
    if (m_run.setup.turns.isActive())
        removeUnusedTurned(foldersOf(m_run), m_run.progress.turned);
    for (const fs::path& older : pruned.older)
        m_journal.recorder().checkpointState(older.string(), "deleted");
    for (const fs::path& broken : pruned.broken)
        m_journal.message(EventLevel::Info, "checkpoint_removed",
            "The broken checkpoint in " + broken.string() +
                " was removed: a newer whole one is there.");
}

Result<bool> RunSaver::saveTurn()
{
    MR_TRY(m_journal.finishLateParts());
    bool isWritten = false;
    const auto write = [&] {
        MR_TRY(writeTurnNow());
        isWritten = true;
        return Status();
    };
    MR_TRY(m_writer.save(
        {false, turnFileBytes(m_run.setup), write}, IfUnwritable::Pause, m_savedStep));
    return isWritten;
}

Status RunSaver::writeTurnNow()
{
    const GroupId group = m_run.setup.turns.trained;
    MR_ASSIGN(const auto state, stateMaster(m_run.body->executor(), m_run.body->memory()));
    MR_ASSIGN(TurnedGroup turned, writeTurned(foldersOf(m_run), m_run.step(),
                                      {group, 0, m_run.body->memory().group(group).elements},
                                      m_run.setup.micro.compute, *state));
    std::erase_if(
        m_run.progress.turned, [&](const TurnedGroup& other) { return other.group == group; });
    m_run.progress.turned.push_back(std::move(turned));
    return {};
}

Status RunSaver::exportModel()
{
    PlanSequence& plans = m_run.body->plans();
    MR_TRY(m_journal.finishLateParts());
    MR_TRY(plans.applyPending(m_run.setup.spec.clipNorm)); // the checkpoint has them as pending
    const Status saved =
        m_writer.save({true, exportBytes(m_run.setup), [this] { return writeModelNow(); }},
            IfUnwritable::Pause, m_savedStep);
    m_journal.book(IntervalKind::Export);
    return saved;
}

Status RunSaver::writeModelNow()
{
    MR_ASSIGN(auto state, stateMaster(m_run.body->executor(), m_run.body->memory()));
    removeTemporaries(m_run.saveDir);
    const Status written = m_run.setup.turns.isActive()
                               ? saveModelInTurns(*state)
                               : saveTrained(m_run.checkpoint(), m_run.saveDir, *state);
    const fs::path folder = m_run.saveDir / trainedFolder(m_run.setup.table);
    std::error_code error;
    if (!written.ok() && !fs::exists(folder / "config.json", error) &&
        !fs::exists(folder / "adapter_config.json", error))
        fs::remove_all(folder, error); // a part of it: gives back the space
    return written;
}

Status RunSaver::saveModelInTurns(MasterReader& trained)
{
    MR_ASSIGN(const auto first, openFirstModel(m_run.setup));
    MR_ASSIGN(const auto model, ModelInTurns::open(m_run, *first, trained));
    MR_ASSIGN(m_run.progress.weightsHash, weightsHash(modelOf(m_run.setup), *model));
    return saveTrained(m_run.checkpoint(), m_run.saveDir, *model);
}

} // namespace mr
