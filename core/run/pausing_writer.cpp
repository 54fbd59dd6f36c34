#include "core/run/pausing_writer.h"

#include "core/save/run_files.h"
#include "core/save/run_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

// Where there is room and writing fails all the same (a quota, a worn disk), each try writes much
// and is followed by twice the wait, up to 64 times the first.
constexpr int kMostDoublings = 6;

std::string savedWords(const std::vector<fs::path>& found, StepIndex saved, StepIndex last)
{
    if (found.empty())
        return "; there is no checkpoint of this run: resumed, it starts again from the beginning, "
               "with the same bits";
    const std::string text = "; the last good checkpoint is " + found[0].string();
    if (saved < 0 || saved >= last)
        return text;
    const std::string steps = saved + 1 == last
                                  ? fmt::format("step {} is", last)
                                  : fmt::format("steps {} to {} are", saved + 1, last);
    return text + ": resumed, " + steps + " made again with the same bits";
}

} // namespace

PausingWriter::PausingWriter(RunContext& run, RunJournal& journal)
    : m_run(run)
    , m_journal(journal)
{
}

Status PausingWriter::save(const Saving& saving, IfUnwritable then, StepIndex savedStep)
{
    m_savedStep = savedStep;
    Status why = trySave(saving);
    if (why.ok() || !isOfDisk(why))
        return why;
    const bool isAsked = then == IfUnwritable::Pause;
    if (m_run.stopRequested || (isAsked && m_run.hooks.onDiskFull == OnDiskFull::Stop)) {
        m_run.requestStop();
        noteUnsaved(saving, why);
        return {};
    }
    if (isAsked && m_run.hooks.onDiskFull == OnDiskFull::Wait)
        return pauseUntilSaved(saving, std::move(why));
    pass(saving, why);
    return {};
}

Status PausingWriter::trySave(const Saving& saving)
{
    // Half-written files of a killed run would take the room.
    removeLeftovers(m_run.runDir, m_run.saveDir);
    MR_TRY(roomFor(m_run.saveDir, saving.bytes));
    MR_TRY(saving.write());
    m_unsaved = {};
    return {};
}

// Else the run itself has failed: waiting for room would not help.
bool PausingWriter::isOfDisk(const Status& why) const
{
    return why.kind() == ErrorKind::Io && m_run.body->failure().ok();
}

Status PausingWriter::pauseUntilSaved(const Saving& saving, Status why)
{
    if (!enterPause()) {
        noteUnsaved(saving, why);
        return {};
    }
    sayPaused(saving, why);
    m_journal.book(saving.isModel ? IntervalKind::Export : IntervalKind::Checkpoint); // the try
    for (int failedTries = 0; !why.ok();) { // tries that nobody asked for
        const auto answer =
            m_run.gate.wait(m_run.hooks.pauseCheck * (1 << std::min(failedTries, kMostDoublings)));
        const bool mayFit = answer || mightFit(saving);
        if (m_run.gate.isStopped()) { // there may be room since it was last looked for
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
    m_journal.book(IntervalKind::Pause); // tries in it belong to it
    return why.ok() || isOfDisk(why) ? Status() : why;
}

bool PausingWriter::mightFit(const Saving& saving) const
{
    return roomFor(m_run.saveDir, saving.bytes).ok() &&
           lackOfSpace(m_run.saveDir, saving.bytes) == SpaceLack::None;
}

Status PausingWriter::tryAgain(const std::optional<PauseAnswer>& answer, const Saving& saving)
{
    if (answer && answer->kind == PauseAnswer::Kind::OtherFolder)
        MR_TRY(useFolder(answer->folder));
    return trySave(saving);
}

// False: a stop was asked for.
bool PausingWriter::enterPause()
{
    m_run.gate.open();
    RunState running = RunState::Running;
    if (!m_run.state.compare_exchange_strong(running, RunState::Paused)) {
        m_run.gate.close();
        return false;
    }
    (void)m_run.store.setStatus(m_run.id, RunStatus::Paused)
        .ok(); // the history may be on the same disk
    return true;
}

void PausingWriter::leavePause(bool isSaved)
{
    m_run.gate.close();
    RunState paused = RunState::Paused;
    m_run.state.compare_exchange_strong(paused, RunState::Running);
    (void)m_run.store.setStatus(m_run.id, RunStatus::Running).ok();
    if (isSaved)
        m_journal.message(EventLevel::Info, "continued", "Goes on: what it waited for is saved.");
}

PauseReport PausingWriter::reportOn(const Saving& saving, const Status& why) const
{
    return pauseReport(saving.isModel, m_run.progress.step, m_run.saveDir, saving.bytes, why);
}

void PausingWriter::sayPaused(const Saving& saving, const Status& why)
{
    const PauseReport report = reportOn(saving, why);
    m_journal.message(EventLevel::Warning, "paused", textOf(report), toJson(report));
}

// Goes on without: weights and state are still in memory, and older checkpoints stay.
void PausingWriter::pass(const Saving& saving, const Status& why)
{
    m_passedStep = m_run.progress.step;
    m_journal.message(EventLevel::Error, saving.isModel ? "model_failed" : "checkpoint_failed",
        (saving.isModel ? "The trained model" : "The checkpoint") +
            std::string(" could not be written: ") + why.message());
    if (m_run.progress.step >= m_run.setup.spec.steps)
        noteUnsaved(saving, why); // forgotten again if the model that follows is written
}

void PausingWriter::noteUnsaved(const Saving& saving, const Status& why)
{
    const PauseReport report = reportOn(saving, why);
    std::error_code error;
    const bool isFolderGone =
        !fs::exists(m_run.runDir / "run.json", error) && m_run.saveDir == m_run.runDir;
    m_lacksSpace = report.isFull;
    m_unsaved = Status::error(why.kind(),
        nameOf(report) + " could not be written: " + why.message() +
            (isFolderGone ? "; the run folder is gone, and with it what the run had saved: "
                            "train again with --out"
                          : savedWords(m_run.checkpoints(), m_savedStep, m_run.progress.step)));
}

Status PausingWriter::useFolder(const fs::path& folder)
{
    std::error_code error;
    const fs::path place = fs::absolute(folder, error);
    MR_TRY(roomFor(place, 0));
    const fs::path dir = place / (m_run.runDir.filename().string() + "-" + m_run.uuid.substr(0, 8));
    if (fs::create_directory(dir, error))
        fs::permissions(dir, fs::perms::owner_all, error);
    if (error)
        return Status::error(ErrorKind::Io, "create " + dir.string() + ": " + error.message());
    MR_TRY(roomFor(dir, 0));
    MR_TRY(moveTo(dir));
    const Status known = m_journal.recordSaveDir();
    m_isFolderNoted = known.ok();
    m_journal.message(known.ok() ? EventLevel::Info : EventLevel::Warning, "folder_chosen",
        "Checkpoints and the model go to " + dir.string() + " from here on" +
            (known.ok()
                    ? "."
                    : "; that could not be noted in the run folder (" + known.message() +
                          "), so continue the run with `millrace resume " + dir.string() + "`."));
    return {};
}

Status PausingWriter::moveTo(const fs::path& dir)
{
    const bool isHeld = dir == m_run.saveDir; // chosen again
    MR_ASSIGN(auto lock, isHeld ? Result<FolderLock>(FolderLock()) : claimRunFolder(dir));
    const std::string before = std::exchange(m_run.setup.spec.saveDir, dir.string());
    if (const Status saved = m_journal.saveRecordOf(dir); !saved.ok()) {
        m_run.setup.spec.saveDir = before;
        return saved;
    }
    m_run.saveDir = dir;
    if (!isHeld)
        m_run.saveLock = std::move(lock);
    return {};
}

void PausingWriter::noteFolder()
{
    if (!m_isFolderNoted)
        m_isFolderNoted = m_journal.saveRecord().ok();
}

} // namespace mr
