// Engine: one run from its first step to its last. Session's implementation.
//
// It owns the parts of a run and decides what comes next: an evaluation, answers, a checkpoint, a
// choice, the next step, or the end. Each part has a file of its name.
//
// Threads    The Session calls of session.h from any thread; everything else on the engine thread,
//            which is the only one that enqueues device work.
// Ownership  Owns all it made; borrows Device and RunStore.
// Errors     The first failure ends the run: streams are drained, the run is closed as failed in
//            the store with its sentence, checkpoints stay. A checkpoint that finds no room pauses
//            the run (PausingWriter). Where memory lacks, the run is planned again (Replanner).

#pragma once

#include "core/run/answerer.h"
#include "core/run/block_turns.h"
#include "core/run/late_choice.h"
#include "core/run/run_opener.h"
#include "core/run/run_resumer.h"

#include <millrace/run_outcome.h>
#include <millrace/session.h>

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mr {

class Engine final : public Session
{
public:
    static Result<std::unique_ptr<Engine>> open(
        const RunSpec& spec, Device& device, RunStore& store, EngineHooks hooks);
    static Result<std::unique_ptr<Engine>> resume(
        const std::filesystem::path& runDir, Device& device, RunStore& store, EngineHooks hooks);
    ~Engine() override;

    Status start() override;
    void requestStop() noexcept override { m_run.requestStop(); }
    void saveNow() noexcept override { m_saveRequested = true; }
    void answerPause(PauseAnswer answer) override { m_run.gate.answer(std::move(answer)); }
    Status ask(Question question) override { return m_answerer.ask(std::move(question)); }
    void stopAnswer() noexcept override { m_answerer.stop(); }
    RunState state() const noexcept override { return m_run.state.load(); }
    Status failure() const override;
    std::int64_t runId() const noexcept override { return m_run.id; }
    Status wait() override;

    // Before start() and after the run has ended.
    const RunSetup& setup() const noexcept { return m_run.setup; }
    const DataReport& data() const noexcept { return m_run.data.report; }
    const ProductVerdict& products() const noexcept { return m_run.products; }
    const std::filesystem::path& runDir() const noexcept { return m_run.runDir; }
    // After the run has ended. saveDir() has its checkpoints and its model; unsaved(), if not ok,
    // names the part that could not be saved and the last good checkpoint.
    const RunProgress& progress() const noexcept { return m_run.progress; }
    std::vector<std::filesystem::path> checkpoints() const { return m_run.checkpoints(); }
    const std::filesystem::path& saveDir() const noexcept { return m_run.saveDir; }
    const Status& unsaved() const noexcept { return m_saver.writer().unsaved(); }
    bool lacksSpace() const noexcept { return m_saver.writer().lacksSpace(); } // that is why
    // After the run has ended: whether training made the model better.
    RunOutcome outcome() const { return m_outcome.outcome(); }

private:
    Engine(Device& device, RunStore& store, EngineHooks hooks);

    void run();
    Status train();
    Status advance();
    Status finish();
    void closeRun(const Status& status);
    void closeJournal(RunStatus end, const Status& reason);
    void publishEnd(const Status& status, RunState end);

    RunContext m_run; // first: the parts borrow it
    RunJournal m_journal;
    OutcomeWatch m_outcome;
    CheckpointFallback m_fallback;
    RunSaver m_saver;
    StepLoop m_steps;
    BodyMaker m_maker;
    Replanner m_replanner;
    BlockTurns m_turns;
    LateChoice m_choice;
    Answerer m_answerer;
    bool m_isComplete = false;

    // Any thread
    std::atomic<bool> m_saveRequested = false;
    mutable std::mutex m_mutex;
    std::condition_variable m_ended;
    Status m_failure;      // guarded by m_mutex
    bool m_done = false;   // guarded by m_mutex
    std::jthread m_thread; // last: joined before the members it uses go
};

} // namespace mr
