// Engine: one run from its first step to its last. Session's implementation.
//
//     BatchStream -> buildPlan -> checkPlan -> StepExecutor -> StallLedger -> Recorder
//                                                  |-> evaluation, checkpoints between steps
//
// Threads    The Session calls of session.h from any thread; run() and all below it on the engine
//            thread, which is the only one that enqueues device work.
// Ownership  Owns all it made; borrows Device and RunStore.
// Errors     The first failure ends the run: streams are drained, the run is closed as failed in
//            the store with its sentence, checkpoints stay. A checkpoint that finds no room or no
//            folder pauses the run between two steps (engine_save.cpp). Where memory lacks, when
//            the run opens or later, it is planned again with less and goes on (engine_memory.cpp);
//            that ends it only if nothing fits, or if it happens again and again without a step in
//            between.

#pragma once

#include "core/answer/evaluator.h"
#include "core/answer/question_queue.h"
#include "core/base/host_readings.h"
#include "core/choose/rate_correction.h"
#include "core/choose/run_setup.h"
#include "core/choose/share_watch.h"
#include "core/data/batch_stream.h"
#include "core/optim/lr_schedule.h"
#include "core/run/loss_watch.h"
#include "core/run/pause_gate.h"
#include "core/run/run_account.h"
#include "core/run/run_data.h"
#include "core/save/checkpoint.h"
#include "core/save/run_files.h"
#include "core/save/save_room.h"
#include "core/step/run_body.h"
#include "core/telemetry/device_sampler.h"
#include "core/telemetry/recorder.h"
#include "core/telemetry/stall_ledger.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/run_outcome.h>
#include <millrace/session.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace mr {

// What a run does when something it must save finds no room, or no folder.
enum class OnDiskFull : std::uint8_t {
    Wait, // pauses until there is room or somebody answers
    Stop, // ends, as stopped; its older checkpoints stay
    Skip, // goes on without
};

// What the command line adds to a Session: the same stream of records the store gets.
struct EngineHooks {
    std::optional<RunSpec> asked; // as Session::open()'s
    ResumeChanges changes;        // of a run that is resumed
    Session::Listener listener;
    OpeningWatch opening;
    RecorderHooks records;
    std::function<void(const CheckpointWritten&, const RunProgress&)> onCheckpoint;
    // What the steps since the last look measured, before anything is chosen by it; may change it,
    // so that a test does not depend on the clock.
    std::function<void(Feedback&)> onRates;
    // Nanoseconds on the clock by which checkpoints are due; empty: nowNs().
    std::function<std::int64_t()> checkpointClock;
    // How the steps compare with the forecast, before anything is learnt; may change it likewise.
    std::function<void(RunTruth&)> onTruth;
    OnDiskFull onDiskFull = OnDiskFull::Wait;
    std::chrono::milliseconds pauseCheck{5000}; // a paused run looks for room this often
    std::filesystem::path saveFolder;           // resume: as PauseAnswer::folder, from the start
};

class Engine final : public Session
{
public:
    static Result<std::unique_ptr<Engine>> open(
        const RunSpec& spec, Device& device, RunStore& store, EngineHooks hooks);
    static Result<std::unique_ptr<Engine>> resume(
        const std::filesystem::path& runDir, Device& device, RunStore& store, EngineHooks hooks);
    ~Engine() override;

    Status start() override;
    void requestStop() noexcept override;
    void saveNow() noexcept override { m_saveRequested = true; }
    void answerPause(PauseAnswer answer) override;
    Status ask(Question question) override;
    void stopAnswer() noexcept override;
    RunState state() const noexcept override { return m_state.load(); }
    Status failure() const override;
    std::int64_t runId() const noexcept override { return m_runId; }
    Status wait() override;

    // Before start() and after the run has ended.
    const RunSetup& setup() const noexcept { return m_setup; }
    const DataReport& data() const noexcept { return m_data.report; }
    const std::filesystem::path& runDir() const noexcept { return m_runDir; }
    // After the run has ended. Where its checkpoints and its model are; and, not ok, what of it
    // could not be saved, and which checkpoint is the last good one.
    const RunProgress& progress() const noexcept { return m_progress; }
    std::vector<std::filesystem::path> checkpoints() const; // newest first
    const std::filesystem::path& saveDir() const noexcept { return m_saveDir; }
    const Status& unsaved() const noexcept { return m_unsaved; }
    bool lacksSpace() const noexcept { return m_lacksSpace; } // that is why
    // After the run has ended: whether training made the model better.
    RunOutcome outcome() const { return judge(m_evaluations); }

private:
    Engine(Device& device, RunStore& store, EngineHooks hooks);

    // Where nothing can be written: ask, or say so and go on.
    enum class IfUnwritable : std::uint8_t { Pause, Report };
    struct Saving {
        bool isModel = false; // not a checkpoint
        std::uint64_t bytes = 0;
        std::function<Status()> write;
    };

    // Where weights and state come from.
    enum class Source : std::uint8_t { Model, Checkpoint };

    // engine_open.cpp
    Status prepareData(const RunSpec& spec);
    Status refuseIfTooLarge() const;
    Status prepareWeights();
    RunProgress firstProgress() const;
    Status openFirst(Source source);
    void recordStopInOpening(const std::string& why);
    void removeLeftScratch() const;
    Status takeOver(const std::string& uuid);
    void removeOldRecords() const;

    // engine_resume.cpp
    Status prepareResume(const std::filesystem::path& runDir);
    Status startAgain();
    Status refuseOtherData() const;
    Status fitToBudget();
    Status refuseIfDone();
    Status findSaveDir(const RunSpec& spec);
    Status enterInHistory();

    // engine_fallback.cpp
    struct BrokenCheckpoint {
        std::filesystem::path path;
        Status why;
    };
    bool hasCheckpoint() const; // also one that is damaged
    Status loadNewestCheckpoint();
    Status noneIsWhole(const std::vector<BrokenCheckpoint>& broken) const;
    void reportBroken(std::int64_t timeMs);
    void reportBroken(const BrokenCheckpoint& broken, std::int64_t timeMs);

    // engine_record.cpp
    NewRun newRun() const;
    Status registerRun();
    Status recordPlan();
    Status saveRecordOf(const std::filesystem::path& saveDir) const;
    PlanReport planReport() const;
    void learnRates();
    Status startRecorder();
    void reportData();
    void startSampler();
    MovedBytes movedBytes() const;
    Status finishLateParts();
    void noteRun(const StepPlan& plan, const StepResult& result);
    void book(IntervalKind kind);
    Status endHistory(RunStatus status, int exitCode, const std::string& reason);

    // engine_memory.cpp
    Status openBody(Source source);
    Status tryBody(Source source, Tier& lacking);
    ScratchOptions scratchOptions();
    bool isStopWanted() const;
    Status planAgain(const Status& why, Tier lacking);
    Status recover(const Status& why);
    bool saveBeforeTeardown();
    void tearDown();
    void dropBody();
    Status reopen(StepIndex reached);
    void reportReplans(const std::string& after);

    // engine_choice.cpp
    Status chooseWhileRunning();
    Status chooseIntervalNow();
    Status lookAtShare();
    Result<bool> exchange(RunSetup next, IfUnwritable then);

    // engine_save.cpp
    bool isCheckpointDue(StepIndex done) const;
    bool isCheckpointDueByTime() const;
    std::int64_t checkpointClockNs() const;
    bool isBestSoFar() const;
    Status saveCheckpoint(IfUnwritable then);
    Status writeCheckpointNow();
    void prune();
    Status exportModel();
    Status writeModelNow();
    Status save(const Saving& saving, IfUnwritable then);
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
    Status useFolder(const std::filesystem::path& folder);

    // engine_answer.cpp
    Status answerQuestionsAsked();
    Status answerQuestion(const Question& question);
    Status answerInto(AnswerRow& row);
    Status nextLogits(std::span<const TokenId> tokens, std::int64_t done, std::span<float> out);
    void dropQuestions();

    void run(const std::stop_token& stop);
    Status train(const std::stop_token& stop);
    Status advance();
    void startBatches();
    void closeRun(const Status& status);
    CheckpointContext checkpointContext();
    std::int64_t activeMs() const;

    // engine_step.cpp
    Status trainStep(StepIndex step);
    Status skipStep(StepIndex step, std::int64_t beginNs);
    Status planStep(StepIndex step);
    void recordStep(StepIndex step, const StepResult& result, const StepTimes& times);
    Status judgeStep(StepIndex step, const StepResult& result);
    Status evaluateIfDue(StepIndex step);
    void noteEvaluation(StepIndex step, double loss);
    void watchLoss(StepIndex step, double loss);
    void readEvaluations();
    void reportOutcome();
    Status notFinite(const std::string& what) const;
    Status checkLastLoss() const;
    Status answerQuestions(StepIndex step);

    // Constant after open()
    Device& m_device;
    RunStore& m_store;
    EngineHooks m_hooks;
    std::filesystem::path m_runDir;
    FolderLock m_lock;     // of m_runDir, until the run has ended
    FolderLock m_saveLock; // of m_saveDir, if that is another folder
    std::string m_uuid;
    std::string m_askedJson; // RunSpec before anything was chosen; empty: an earlier program's run
    std::int64_t m_runId = 0;
    RunData m_data;
    std::string m_dataHash; // of the training tokens, in order
    LrSchedule m_schedule;

    // Engine thread; before start(), whoever opens.
    RunSetup m_setup; // another one after memory lacked, or something was chosen again
    std::unique_ptr<RunBody> m_body;
    std::vector<std::string> m_replans; // not yet reported
    ShareWatch m_watch;
    HostProbe m_load; // of all programs, since the first step
    std::unique_ptr<BatchStream> m_batches;
    std::unique_ptr<Recorder> m_recorder;
    Recorder::Producer* m_spans = nullptr;
    std::unique_ptr<DeviceSampler> m_sampler; // after the recorder: it is joined before that goes
    StepPlan m_evalPlan;
    StepPlan m_answerPlan; // of one token
    StepBatch m_batch;
    std::optional<StallLedger> m_ledger;
    std::size_t m_mostTasks = 0;
    std::vector<TraceEvent> m_stalls;
    RunAccount m_account;
    MovedBytes m_movedBefore; // before this run; of the disk also by earlier bodies
    RunProgress m_progress;
    LossWatch m_lossWatch;
    Evaluations m_evaluations; // of earlier lives, too
    std::int64_t m_startNs = 0;
    std::int64_t m_resumedMs = 0;    // active time of earlier lives
    std::filesystem::path m_saveDir; // of checkpoints and the model: m_runDir, or another folder
    bool m_isFolderNoted = true;     // in the record of the run
    std::int64_t m_savedStep = -1;
    std::int64_t m_passedStep = -1;    // went on without its checkpoint
    std::int64_t m_checkpointNs = 0;   // when the last one was written or tried
    Status m_unsaved;                  // what the end of the run could not save
    bool m_lacksSpace = false;         // for want of room, not for another reason
    std::int64_t m_evaluatedStep = -1; // or passed, where none was due
    int m_recoveries = 0;              // since the last step that was completed
    bool m_isComplete = false;
    std::vector<BrokenCheckpoint> m_broken; // newer than the one that was used; not yet reported
    std::string m_startedAgain;             // why, of a run that has no checkpoint to go on from
    bool m_otherIsa = false;                // resumed on another instruction set

    // Any thread
    PauseGate m_gate;
    QuestionQueue m_questions;
    std::atomic<RunState> m_state = RunState::Ready;
    std::atomic<bool> m_stopRequested = false;
    std::atomic<bool> m_saveRequested = false;
    mutable std::mutex m_mutex;
    std::condition_variable m_ended;
    Status m_failure;      // guarded by m_mutex
    bool m_done = false;   // guarded by m_mutex
    std::jthread m_thread; // last: joined before what it uses goes
};

} // namespace mr
