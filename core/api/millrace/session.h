// Session: all that the UI and the command line know of the engine.
//
// Commands go in through this class. Everything else comes out through the run store:
// a Session writes events and rows to SQLite, and readers (run_reader.h) read them there, so a live
// run and one from last week are shown by the same code.
//
// Threads  Every function may be called from any thread; all but open(), resume() and the
//          destructor return without waiting for the device. The listener is called on the
//          telemetry thread, at most ten times a second.
// Errors   open() reports errors that are known before the first step: missing files, a plan that
//          does not fit. A checkpoint that finds no room, or no folder, pauses the run. Other
//          failures end it: state() becomes Failed and failure() says why.

#pragma once

#include <millrace/run_spec.h>
#include <millrace/status.h>
#include <millrace/try_it.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace mr {

class Device;
class RunStore;

enum class RunState : std::uint8_t {
    Ready,
    Running,
    Paused, // something cannot be saved; see PauseAnswer. Nothing is lost
    Stopping,
    Finished,
    Stopped,
    Failed
};

// Answer to a pause. A paused run also tries again by itself as soon as there is room.
struct PauseAnswer {
    enum class Kind : std::uint8_t {
        TryAgain,
        OtherFolder, // checkpoints and the model go below `folder` from here on
        GoOnWithout, // skip the checkpoint or model that could not be saved now
    };
    Kind kind = Kind::TryAgain;
    std::string folder;
};

// Something asked of a run while it goes on. `id` is the caller's, to know the answer by.
struct Question {
    std::int64_t id = 0;
    Prompt prompt;
};

// A run gives no longer answers: meanwhile it does not train.
inline constexpr std::int64_t kMostAnswerTokens = 512;

// Opening a run, as its caller watches it. Policies with state on disk fill their file first, which
// takes as long as writing it does.
//
// Threads  Both are called by the thread that opens, and by the engine's if the run opens again
//          while it goes on (another plan, memory that lacks). They must return quickly and may
//          not call into the Session.
struct OpeningWatch {
    // Ten times a second at most, and when all is written.
    std::function<void(std::uint64_t doneBytes, std::uint64_t allBytes)> onScratchFill = {};
    // Asked after each MiB of it. True: the file is removed, and the run ends as stopped.
    std::function<bool()> isCancelled = {};
};

class Session
{
public:
    // Called after new rows of this run were committed. Must return quickly and must
    // not call back into the Session.
    using Listener = std::function<void(std::int64_t runId)>;

    // Borrows `device` and `store`; both must outlive the Session. Blocks while the model and
    // dataset are read: call it off the UI thread. Cancelled: the watch said so; the history has
    // the run as stopped. `asked`: the spec that the record of the run calls asked for, where
    // `spec` has some of its open values chosen already; null: `spec`.
    static Result<std::unique_ptr<Session>> open(const RunSpec& spec, Device& device,
        RunStore& store, Listener listener, OpeningWatch watch = {},
        const RunSpec* asked = nullptr);

    // Continues the run in `runDir` from its last good checkpoint.
    static Result<std::unique_ptr<Session>> resume(const std::string& runDir, Device& device,
        RunStore& store, Listener listener, OpeningWatch watch = {});

    virtual ~Session() = default; // asks to stop and waits for the threads

    virtual Status start() = 0;
    // Finishes the current step, saves, ends. What cannot be saved then is not waited for: the
    // run ends as stopped, and its reason names the last good checkpoint.
    virtual void requestStop() noexcept = 0;
    // Writes a checkpoint after the step that is under way, and goes on. Best effort: one that
    // finds no room is reported in the log, and does not pause the run.
    virtual void saveNow() noexcept {}
    virtual void answerPause(PauseAnswer answer) = 0; // nothing happens unless it is paused
    // Asked between two steps, of the weights the next forward reads; training ends with the bits
    // it would have ended with. What comes out is in RunReader::answers(). The sequence length of
    // the run is the room for prompt and answer together. InvalidArgument: a figure of the prompt,
    // a run that has ended, or too many questions that wait.
    virtual Status ask(Question question) = 0;
    // Ends the answer that is being given, and drops the questions that wait.
    virtual void stopAnswer() noexcept = 0;
    virtual RunState state() const noexcept = 0;
    virtual Status failure() const = 0; // ok unless state() is Failed
    virtual std::int64_t runId() const noexcept = 0;
    virtual Status wait() = 0; // blocks until the run has ended; failure()
};

// The spec a run folder was started with, to make its device again before resume().
Result<RunSpec> readRunSpec(const std::string& runDir);

} // namespace mr
