// Engine: one run from its first step to its last. Session's implementation.
//
//     BatchStream -> buildPlan -> checkPlan -> StepExecutor -> StallLedger -> Recorder
//                                                  |-> evaluation, checkpoints between steps
//
// Threads    The Session calls of session.h from any thread; run() and all below it on the engine
//            thread, which is the only one that enqueues device work.
// Ownership  Owns all it made; borrows Device and RunStore.
// Errors     The first failure ends the run: streams are drained, the run is closed as failed in
// the
//            store with its sentence, checkpoints stay. A full disk at a checkpoint is reported as
//            a warning and training goes on.

#pragma once

#include "core/base/failure_latch.h"
#include "core/data/batch_stream.h"
#include "core/data/tokenizer.h"
#include "core/engine/checkpoint.h"
#include "core/engine/evaluator.h"
#include "core/engine/run_memory.h"
#include "core/engine/run_setup.h"
#include "core/engine/step_executor.h"
#include "core/optim/host_updater.h"
#include "core/optim/lr_schedule.h"
#include "core/plan/plan_builder.h"
#include "core/telemetry/device_sampler.h"
#include "core/telemetry/recorder.h"
#include "core/telemetry/stall_ledger.h"

#include <millrace/session.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

namespace mr {

// What the command line adds to a Session: the same stream of records the store gets.
struct EngineHooks {
    Session::Listener listener;
    RecorderHooks records;
    std::function<void(const CheckpointWritten&, const RunProgress&)> onCheckpoint;
};

class Engine final : public Session
{
public:
    static constexpr std::size_t kPlanKinds = 2048;

    static Result<std::unique_ptr<Engine>> open(
        const RunSpec& spec, Device& device, RunStore& store, EngineHooks hooks);
    static Result<std::unique_ptr<Engine>> resume(
        const std::filesystem::path& runDir, Device& device, RunStore& store, EngineHooks hooks);
    ~Engine() override;

    Status start() override;
    void requestStop() noexcept override;
    RunState state() const noexcept override { return m_state.load(); }
    Status failure() const override;
    std::int64_t runId() const noexcept override { return m_runId; }
    Status wait() override;

    // Constant after open().
    const RunSetup& setup() const noexcept { return m_setup; }
    const std::filesystem::path& runDir() const noexcept { return m_runDir; }
    // After the run has ended.
    const RunProgress& progress() const noexcept { return m_progress; }

private:
    Engine(Device& device, RunStore& store, EngineHooks hooks);

    Status prepareData(const RunSpec& spec);
    Status prepareDevice();
    Status prepareWeights();
    NewRun newRun() const;
    Status registerRun();
    Status prepareResume(const std::filesystem::path& runDir);
    Status loadNewestCheckpoint();
    Status startRecorder();
    void startSampler();

    void run(const std::stop_token& stop);
    Status train(const std::stop_token& stop);
    Status trainStep(StepIndex step);
    Status skipStep(StepIndex step, std::int64_t beginNs);
    Status planStep(StepIndex step);
    void setWindowFactors(
        StepIndex step, const std::optional<HostJob>& job, StepInputs& inputs) const;
    void recordStep(StepIndex step, const StepResult& result, const StepTimes& times);
    Status judgeStep(StepIndex step, const StepResult& result);
    Status finishLateParts();
    Status evaluateIfDue(StepIndex step);
    Status answerQuestions(StepIndex step);
    Status saveCheckpoint();
    Status exportModel();
    void closeRun(const Status& status);
    CheckpointContext checkpointContext();
    std::int64_t activeMs() const;
    PlanReport planReport() const;

    // Constant after open()
    Device& m_device;
    RunStore& m_store;
    EngineHooks m_hooks;
    RunSetup m_setup;
    std::filesystem::path m_runDir;
    std::string m_uuid;
    std::int64_t m_runId = 0;
    std::unique_ptr<Tokenizer> m_tokenizer;
    TokenSet m_trainSet;
    TokenSet m_evalSet;
    std::unique_ptr<TierStore> m_tiers;
    std::unique_ptr<RunMemory> m_memory;
    FailureLatch m_latch;
    std::unique_ptr<StepExecutor> m_executor;
    std::unique_ptr<HostUpdater> m_updater; // goes first: its jobs point to the executor's events

    // Engine thread
    std::unique_ptr<BatchStream> m_batches;
    std::unique_ptr<Recorder> m_recorder;
    Recorder::Producer* m_spans = nullptr;
    std::unique_ptr<DeviceSampler> m_sampler; // after the recorder: it is joined before that goes
    std::optional<PlanBuilder> m_builder;
    BuiltStep m_built;
    BuiltStep m_flush;
    AdamwFactors m_factors; // of the newest version
    StepPlan m_evalPlan;
    StepBatch m_batch;
    LrSchedule m_schedule;
    std::optional<StallLedger> m_ledger;
    std::array<std::uint8_t, kPlanKinds> m_plansSeen{}; // that were checked, by kind
    std::size_t m_mostTasks = 0;
    std::optional<HostJob> m_jobBefore; // in flight when the step began
    std::vector<TraceEvent> m_stalls;
    RunProgress m_progress;
    std::int64_t m_startNs = 0;
    std::int64_t m_resumedMs = 0; // active time of earlier lives
    std::int64_t m_savedStep = -1;
    Status m_fallback;       // why the newest checkpoint was not used; ok: it was
    bool m_otherIsa = false; // resumed on another instruction set

    // Any thread
    std::atomic<RunState> m_state = RunState::Ready;
    std::atomic<bool> m_stopRequested = false;
    mutable std::mutex m_mutex;
    std::condition_variable m_ended;
    Status m_failure;      // guarded by m_mutex
    bool m_done = false;   // guarded by m_mutex
    std::jthread m_thread; // last: joined before what it uses goes
};

} // namespace mr
