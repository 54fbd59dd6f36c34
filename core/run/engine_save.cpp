// What a run saves, and what it does where that finds no room.
//
// Room is looked for before the first byte is written. Where it lacks, or the folder is gone, what
// was begun is removed, the older checkpoints stay, and the run pauses between two steps: all it
// has learned is in memory. It looks for room now and then, and takes answers; whatever comes of
// it, the next step has the bits it would have had.

#include "core/base/clock.h"
#include "core/choose/checkpoint_size.h"
#include "core/model/weights.h"
#include "core/run/engine.h"
#include "core/save/run_files.h"
#include "core/save/run_guard.h"
#include "core/step/run_master.h"
#include "core/telemetry/run_folder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

// Where there is room and writing fails all the same (a quota, a worn disk), each try writes much
// and is followed by twice the wait, up to 64 times the first.
constexpr int kMostDoublings = 6;

// Of what is on disk and what is not.
std::string savedWords(const std::vector<fs::path>& found, StepIndex saved, StepIndex last)
{
    if (found.empty())
        return "; there is no checkpoint of this run: resumed, it starts again from the beginning, "
               "with the same bits";
    const std::string text = "; the last good checkpoint is " + found[0].string();
    if (saved < 0 || saved >= last)
        return text;
    const std::string steps = saved + 1 == last ? "step " + std::to_string(last) + " is"
                                                : "steps " + std::to_string(saved + 1) + " to " +
                                                      std::to_string(last) + " are";
    return text + ": resumed, " + steps + " made again with the same bits";
}

} // namespace

std::vector<fs::path> Engine::checkpoints() const
{
    return listCheckpoints(m_runDir, m_saveDir);
}

// Between two steps; that of the last one is always written.
bool Engine::isCheckpointDue(StepIndex done) const
{
    const RunSpec& spec = m_setup.spec;
    if (done == 0 || done >= spec.steps || m_savedStep == done || m_passedStep == done)
        return false;
    return (spec.checkpointEvery > 0 && done % spec.checkpointEvery == 0) ||
           (spec.keepBest && isBestSoFar()) || isCheckpointDueByTime();
}

// Where a step was just evaluated the next step is taken instead, unless every step is evaluated:
// else chance would decide whether a run keeps one checkpoint more as its best, and its plan would
// have to reserve room for it.
bool Engine::isCheckpointDueByTime() const
{
    constexpr std::int64_t kNsPerMinute = 60'000'000'000;
    const RunSpec& spec = m_setup.spec;
    if (spec.checkpointMinutes == 0 || (std::isfinite(m_progress.evalLoss) && spec.evalEvery != 1))
        return false;
    return checkpointClockNs() - m_checkpointNs >= spec.checkpointMinutes * kNsPerMinute;
}

std::int64_t Engine::checkpointClockNs() const
{
    return m_hooks.checkpointClock ? m_hooks.checkpointClock() : nowNs();
}

// Of those that have a checkpoint: what is on disk decides, so a run that was killed decides alike.
bool Engine::isBestSoFar() const
{
    const double best = bestEvalLoss(m_runDir, m_saveDir);
    return std::isfinite(m_progress.evalLoss) && (std::isnan(best) || m_progress.evalLoss < best);
}

Status Engine::saveCheckpoint(IfUnwritable then)
{
    MR_TRY(finishLateParts());
    m_progress.activeMs = activeMs();
    m_progress.carry = m_body->plans().carry();
    // A run that is killed, or loses its power, goes on from the checkpoint: the records up to it
    // must be on the disk before it. A history that fails was reported, and is no reason to lose
    // the checkpoint.
    (void)m_recorder->flush().ok();
    const Status saved =
        save({false, checkpointBytes(m_setup), [this] { return writeCheckpointNow(); }}, then);
    book(IntervalKind::Checkpoint);
    m_checkpointNs = checkpointClockNs(); // also of one that was passed: no try at every step
    return saved;
}

Status Engine::writeCheckpointNow()
{
    const std::int64_t begin = nowNs();
    auto written = writeCheckpoint(checkpointContext(), m_saveDir, m_progress);
    MR_TRY(written.status());
    m_watch.saved(1e-9 * static_cast<double>(nowNs() - begin));
    CheckpointRow row;
    row.step = m_progress.step;
    row.path = written.value().path.string();
    row.bytes = static_cast<std::int64_t>(written.value().bytes);
    row.state = "complete";
    row.createdMs = wallClockMs();
    row.writeMs = (nowNs() - begin) / 1'000'000;
    row.evalLoss = m_progress.evalLoss;
    m_savedStep = m_progress.step; // whatever becomes of its row
    m_recorder->checkpoint(row, written.value().manifestHash);
    m_recorder->message(EventLevel::Info, "checkpoint", m_progress.step, activeMs(),
        "Checkpoint of step " + std::to_string(m_progress.step) + " written.");
    prune();
    (void)m_recorder->flush().ok();
    if (!m_isFolderNoted)
        m_isFolderNoted = saveRunRecord(m_runDir.string(), newRun()).ok();
    if (m_hooks.onCheckpoint)
        m_hooks.onCheckpoint(written.value(), m_progress);
    return {};
}

// After a newer one was written.
void Engine::prune()
{
    const Pruned pruned = pruneCheckpoints(m_runDir, m_setup.spec.keepCheckpoints, m_saveDir);
    for (const fs::path& older : pruned.older)
        m_recorder->checkpointState(older.string(), "deleted");
    for (const fs::path& broken : pruned.broken)
        m_recorder->message(EventLevel::Info, "checkpoint_removed", m_progress.step, activeMs(),
            "The broken checkpoint in " + broken.string() +
                " was removed: a newer whole one is there.");
}

Status Engine::exportModel()
{
    PlanSequence& plans = m_body->plans();
    MR_TRY(finishLateParts());
    MR_TRY(plans.applyPending(m_setup.spec.clipNorm)); // the checkpoint has them as pending
    const Status saved =
        save({true, exportBytes(m_setup), [this] { return writeModelNow(); }}, IfUnwritable::Pause);
    book(IntervalKind::Export);
    return saved;
}

Status Engine::writeModelNow()
{
    auto state = stateMaster(m_body->executor(), m_body->memory());
    MR_TRY(state.status());
    const CheckpointContext context = checkpointContext();
    removeTemporaries(m_saveDir);
    Status written = saveModel(m_saveDir / "model", m_setup.config, m_setup.table, *state.value(),
        m_body->memory().compute() == DType::F32 ? ExportType::F32 : ExportType::BF16,
        context.carryFrom);
    if (written.ok())
        written = saveChatTemplate(m_saveDir / "model", context.chatTemplate);
    std::error_code error;
    if (!written.ok() && !fs::exists(m_saveDir / "model" / "config.json", error))
        fs::remove_all(m_saveDir / "model", error); // half a model: gives back the space
    return written;
}

// ok: saved, gone on without it, or ended by a stop. Who must know looks at m_savedStep.
Status Engine::save(const Saving& saving, IfUnwritable then)
{
    Status why = trySave(saving);
    if (why.ok() || !isOfDisk(why))
        return why;
    const bool isAsked = then == IfUnwritable::Pause;
    if (m_stopRequested || (isAsked && m_hooks.onDiskFull == OnDiskFull::Stop)) {
        requestStop();
        noteUnsaved(saving, why);
        return {};
    }
    if (isAsked && m_hooks.onDiskFull == OnDiskFull::Wait)
        return pauseUntilSaved(saving, std::move(why));
    pass(saving, why);
    return {};
}

Status Engine::trySave(const Saving& saving)
{
    // What a killed run left half written would else take the room.
    removeLeftovers(m_runDir, m_saveDir);
    MR_TRY(roomFor(m_saveDir, saving.bytes));
    MR_TRY(saving.write());
    m_unsaved = {};
    return {};
}

// Else the run itself has failed: waiting for room would not help.
bool Engine::isOfDisk(const Status& why) const
{
    return why.kind() == ErrorKind::Io && m_body->failure().ok();
}

Status Engine::pauseUntilSaved(const Saving& saving, Status why)
{
    if (!enterPause()) {
        noteUnsaved(saving, why);
        return {};
    }
    sayPaused(saving, why);
    book(saving.isModel ? IntervalKind::Export : IntervalKind::Checkpoint); // the try
    for (int failedTries = 0; !why.ok();) {                                 // of its own accord
        const auto answer =
            m_gate.wait(m_hooks.pauseCheck * (1 << std::min(failedTries, kMostDoublings)));
        const bool mayFit = answer || mightFit(saving);
        if (m_gate.isStopped()) { // there may be room since it was last looked for
            if (mayFit)
                why = trySave(saving);
            if (!why.ok())
                noteUnsaved(saving, why);
            break;
        }
        if (answer && answer->kind == PauseAnswer::Kind::GoOnWithout) {
            pass(saving, why);
            break;
        }
        if (!mayFit)
            continue;
        why = tryAgain(answer, saving);
        if (!why.ok() && !isOfDisk(why))
            break;
        failedTries = answer ? 0 : failedTries + 1;
        if (!why.ok() && answer)
            sayPaused(saving, why);
    }
    leavePause(why.ok());
    book(IntervalKind::Pause); // tries in it belong to it
    return why.ok() || isOfDisk(why) ? Status() : why;
}

bool Engine::mightFit(const Saving& saving) const
{
    return roomFor(m_saveDir, saving.bytes).ok() &&
           lackOfSpace(m_saveDir, saving.bytes) == SpaceLack::None;
}

Status Engine::tryAgain(const std::optional<PauseAnswer>& answer, const Saving& saving)
{
    if (answer && answer->kind == PauseAnswer::Kind::OtherFolder)
        MR_TRY(useFolder(answer->folder));
    return trySave(saving);
}

// False: a stop was asked for.
bool Engine::enterPause()
{
    m_gate.open();
    RunState running = RunState::Running;
    if (!m_state.compare_exchange_strong(running, RunState::Paused)) {
        m_gate.close();
        return false;
    }
    (void)m_store.setStatus(m_runId, RunStatus::Paused).ok(); // the history may be on the same disk
    return true;
}

void Engine::leavePause(bool isSaved)
{
    m_gate.close();
    RunState paused = RunState::Paused;
    m_state.compare_exchange_strong(paused, RunState::Running);
    (void)m_store.setStatus(m_runId, RunStatus::Running).ok();
    if (isSaved)
        m_recorder->message(EventLevel::Info, "continued", m_progress.step, activeMs(),
            "Goes on: what it waited for is saved.");
}

PauseReport Engine::reportOn(const Saving& saving, const Status& why) const
{
    return pauseReport(saving.isModel, m_progress.step, m_saveDir, saving.bytes, why);
}

void Engine::sayPaused(const Saving& saving, const Status& why)
{
    const PauseReport report = reportOn(saving, why);
    m_recorder->message(
        EventLevel::Warning, "paused", m_progress.step, activeMs(), textOf(report), toJson(report));
}

// Goes on without: what it has learned is still in memory, and the older checkpoints stay.
void Engine::pass(const Saving& saving, const Status& why)
{
    m_passedStep = m_progress.step;
    m_recorder->message(EventLevel::Error, saving.isModel ? "model_failed" : "checkpoint_failed",
        m_progress.step, activeMs(),
        (saving.isModel ? "The trained model" : "The checkpoint") +
            std::string(" could not be written: ") + why.message());
    if (m_progress.step >= m_setup.spec.steps)
        noteUnsaved(saving, why); // forgotten again if the model that follows is written
}

void Engine::noteUnsaved(const Saving& saving, const Status& why)
{
    const PauseReport report = reportOn(saving, why);
    std::error_code error;
    const bool isFolderGone = !fs::exists(m_runDir / "run.json", error) && m_saveDir == m_runDir;
    m_lacksSpace = report.isFull;
    m_unsaved = Status::error(why.kind(),
        nameOf(report) + " could not be written: " + why.message() +
            (isFolderGone ? "; the run folder is gone, and with it what the run had saved: "
                            "train again with --out"
                          : savedWords(checkpoints(), m_savedStep, m_progress.step)));
}

// Checkpoints and the model go below `folder` from here on, to a folder of this run that can also
// be resumed by itself, should the old one not come back.
Status Engine::useFolder(const fs::path& folder)
{
    std::error_code error;
    const fs::path place = fs::absolute(folder, error);
    MR_TRY(roomFor(place, 0));
    const fs::path dir = place / (m_runDir.filename().string() + "-" + m_uuid.substr(0, 8));
    if (fs::create_directory(dir, error))
        fs::permissions(dir, fs::perms::owner_all, error);
    if (error)
        return Status::error(ErrorKind::Io, "create " + dir.string() + ": " + error.message());
    MR_TRY(roomFor(dir, 0));
    const bool isHeld = dir == m_saveDir; // chosen again
    auto lock = isHeld ? Result<FolderLock>(FolderLock()) : claimRunFolder(dir);
    MR_TRY(lock.status());
    const std::string before = std::exchange(m_setup.spec.saveDir, dir.string());
    if (const Status saved = saveRecordOf(dir); !saved.ok()) {
        m_setup.spec.saveDir = before;
        return saved;
    }
    m_saveDir = dir;
    if (!isHeld)
        m_saveLock = std::move(lock).value();
    const Status known = saveRunRecord(m_runDir.string(), newRun());
    m_isFolderNoted = known.ok(); // else it is tried again with every checkpoint
    (void)m_store.setConfig(m_runId, newRun().configJson).ok();
    m_recorder->message(known.ok() ? EventLevel::Info : EventLevel::Warning, "folder_chosen",
        m_progress.step, activeMs(),
        "Checkpoints and the model go to " + dir.string() + " from here on" +
            (known.ok()
                    ? "."
                    : "; that could not be noted in the run folder (" + known.message() +
                          "), so continue the run with `millrace resume " + dir.string() + "`."));
    return {};
}

} // namespace mr
