// RunJournal: everything a run writes down about itself: its record in the run folder, its row in
// the history, steps, intervals and messages.
//
// Each message carries the step the run has come to and its active time. Each interval covers the
// time since the last row, so rows leave no gap (RunAccount).
//
// Threads    Engine thread; before start(), the thread that opens the run.
// Ownership  Owns recorder and sampler; borrows the context.
// Errors     Those of the store and of the run folder. A history that fails during a run is
//            reported by the recorder and stops nothing.

#pragma once

#include "core/run/run_account.h"
#include "core/run/run_context.h"
#include "core/telemetry/device_sampler.h"
#include "core/telemetry/recorder.h"

#include <memory>
#include <string>
#include <string_view>

namespace mr {

class RunJournal
{
public:
    explicit RunJournal(RunContext& run);

    // The record of the run and its row in the history.
    Status saveRecord() const;
    Status registerRun();
    // Both again, after the run was planned again.
    Status recordPlan();
    // Checkpoints go to run.saveDir from here on.
    Status recordSaveDir();
    // The record of the folder the run saves to, if that is not its own: as if it were.
    Status saveRecordOf(const std::filesystem::path& saveDir) const;

    // From here on steps and messages are kept.
    Status start();
    bool isStarted() const noexcept { return m_recorder != nullptr; }
    Recorder& recorder() noexcept { return *m_recorder; }
    Recorder::Producer& spans() noexcept { return *m_spans; }
    void message(EventLevel level, std::string_view code, std::string text, std::string data = {});
    // Blocks until everything is on the disk. A history that fails was reported.
    void flush();

    // A plan ran between steps: its times count for the interval that is booked next.
    void noteRun(const StepPlan& plan, const StepResult& result);
    // Makes the late parts of the last step, in an interval of their own.
    Status finishLateParts();
    void book(IntervalKind kind);
    std::int64_t endNs() const noexcept { return m_account.endNs(); } // end of the last row
    // Ends a row that is a step. Returns the bytes moved since the row before.
    MovedBytes closeStep(std::int64_t endNs) { return m_account.closeStep(endNs, moved()); }
    // The body is about to go: its bytes stay counted.
    void keepMoved();

    // The last message, then nothing more.
    void close(EventLevel level, std::string_view code, std::string text);
    // A history that was deleted during the run is made again from the run folder.
    Status endHistory(RunStatus status, int exitCode, const std::string& reason);

private:
    NewRun newRun() const;
    void messageOfStart(
        EventLevel level, std::string_view code, std::string text, std::string data = {});
    void reportStart();
    void reportData();
    void startSampler();
    MovedBytes moved() const;

    RunContext& m_run;
    RunAccount m_account;
    MovedBytes m_movedBefore; // before this run; on disk also by earlier bodies
    std::unique_ptr<Recorder> m_recorder;
    Recorder::Producer* m_spans = nullptr;
    std::unique_ptr<DeviceSampler> m_sampler; // joined before the recorder goes
};

} // namespace mr
