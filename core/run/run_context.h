// RunContext: shared by the parts of one run. It holds values and no behaviour beyond reading them.
//
// Engine owns one; its parts (opener, step loop, saver, ...) borrow it and outlive nothing of it.
//
// Threads    As noted on each group of members.
// Ownership  Owns the body, the data and the folder locks; borrows Device and RunStore.

#pragma once

#include "core/base/folder_lock.h"
#include "core/choose/rate_correction.h"
#include "core/choose/run_setup.h"
#include "core/choose/share_tuner.h"
#include "core/optim/lr_schedule.h"
#include "core/prove/product_check.h"
#include "core/run/pause_gate.h"
#include "core/run/run_data.h"
#include "core/save/checkpoint.h"
#include "core/save/run_files.h"
#include "core/step/training_state.h"
#include "core/telemetry/recorder.h"

#include <millrace/session.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace mr {

// Reaction of a run when something it must save finds no room, or no folder.
enum class OnDiskFull : std::uint8_t {
    Wait, // pauses until there is room or somebody answers
    Stop, // ends, as stopped; its older checkpoints stay
    Skip, // goes on without
};

// Additions of the command line to a Session: settings, and the stream of records that the store
// gets.
struct EngineHooks {
    std::optional<RunSpec> asked; // as Session::open()'s
    ResumeChanges changes;        // for a run that is resumed
    Session::Listener listener;
    OpeningWatch opening;
    RecorderHooks records;
    std::function<void(const CheckpointWritten&, const RunProgress&)> onCheckpoint;
    // Gets the rates that the steps since the last look measured, before a choice uses them. May
    // change them, so that a test does not depend on the clock.
    std::function<void(Feedback&)> onRates;
    // Nanoseconds on the clock by which checkpoints are due; empty: nowNs().
    std::function<std::int64_t()> checkpointClock;
    // Gets the time that steps took, before rates are corrected by it; may change it likewise.
    std::function<void(RunTruth&)> onTruth;
    OnDiskFull onDiskFull = OnDiskFull::Wait;
    std::chrono::milliseconds pauseCheck{5000}; // a paused run looks for room this often
    std::filesystem::path saveFolder;           // resume: as PauseAnswer::folder, from the start
};

struct RunContext {
    RunContext(Device& usedDevice, RunStore& usedStore, EngineHooks usedHooks);

    Device& device;
    RunStore& store;
    EngineHooks hooks;

    // Constant once the run is open.
    std::filesystem::path runDir;
    FolderLock lock; // on runDir, until the run has ended
    std::string uuid;
    std::string askedJson; // RunSpec before anything was chosen; empty: an earlier program's run
    std::int64_t id = 0;   // in the history
    RunData data;
    std::string dataHash; // over the training tokens, in order
    LrSchedule schedule;
    std::string startedAgain; // why the run has no checkpoint to go on from

    // Engine thread; before start(), the thread that opens the run.
    RunSetup setup;          // replaced when memory lacked, or something was chosen again
    ProductVerdict products; // of the opening check; before it, as recorded
    Buffer productScratch;   // lent to the body: for gradients that are added apart
    std::unique_ptr<TrainingState> body;
    RunProgress progress;
    std::string baseHash; // of the model beside an adapter, as it was read; empty: there is none
    ShareTuner watch;     // measures the steps of the body
    std::filesystem::path saveDir; // for checkpoints and the model: runDir, or another folder
    FolderLock saveLock;           // on saveDir, if that is another folder
    std::int64_t startNs = 0;
    std::int64_t resumedMs = 0; // active time of earlier lives

    // Any thread.
    std::atomic<RunState> state = RunState::Ready;
    std::atomic<bool> stopRequested = false;
    PauseGate gate;

    StepIndex step() const noexcept { return progress.step; }
    std::int64_t activeMs() const;
    // Asked for by a call, or by the caller that waits for the run to open.
    bool isStopWanted() const;
    void requestStop() noexcept;
    CheckpointContext checkpoint() const;
    std::vector<std::filesystem::path> checkpoints() const; // newest first
};

} // namespace mr
