// PausingWriter: writes a checkpoint or the model, or pauses the run where that finds no room.
//
// It looks for room before it writes the first byte. If room lacks, or the folder is gone, it
// removes the files it began, older checkpoints stay, and the run pauses between two steps with its
// state in memory. It looks for room again and again, and takes answers. The next step has the bits
// it would have had without the pause.
//
// Threads    Engine thread. After the run has ended: unsaved(), lacksSpace().
// Ownership  Borrows context and journal.
// Errors     save(): ok also if the run goes on without, or was stopped; unsaved() or the log then
//            names the part that was not saved. Errors that are not about the disk come back
//            unchanged.

#pragma once

#include "core/run/run_journal.h"
#include "core/save/save_room.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

namespace mr {

// Where nothing can be written: ask, or report it and go on.
enum class IfUnwritable : std::uint8_t { Pause, Report };

struct Saving {
    bool isModel = false; // not a checkpoint
    std::uint64_t bytes = 0;
    std::function<Status()> write;
};

class PausingWriter
{
public:
    PausingWriter(RunContext& run, RunJournal& journal);

    // `savedStep`: of the newest checkpoint; -1: there is none.
    Status save(const Saving& saving, IfUnwritable then, StepIndex savedStep);
    // Checkpoints and the model go below `folder` from here on, to a folder of this run that can
    // also be resumed by itself, should the old one not come back.
    Status useFolder(const std::filesystem::path& folder);
    // Notes the folder in the run's record if that has failed so far.
    void noteFolder();

    StepIndex passedStep() const noexcept { return m_passedStep; } // went on without saving it
    const Status& unsaved() const noexcept { return m_unsaved; }   // names the part not saved
    bool lacksSpace() const noexcept { return m_lacksSpace; }      // that is why

private:
    Status trySave(const Saving& saving);
    bool isOfDisk(const Status& why) const;
    Status pauseUntilSaved(const Saving& saving, Status why);
    bool mightFit(const Saving& saving) const;
    Status tryAgain(const std::optional<PauseAnswer>& answer, const Saving& saving);
    bool enterPause();
    void leavePause(bool isSaved);
    PauseReport reportOn(const Saving& saving, const Status& why) const;
    void sayPaused(const Saving& saving, const Status& why);
    void pass(const Saving& saving, const Status& why);
    void noteUnsaved(const Saving& saving, const Status& why);
    Status moveTo(const std::filesystem::path& dir);

    RunContext& m_run;
    RunJournal& m_journal;
    StepIndex m_savedStep = -1;
    StepIndex m_passedStep = -1;
    bool m_isFolderNoted = true; // in the record of the run
    Status m_unsaved;
    bool m_lacksSpace = false;
};

} // namespace mr
