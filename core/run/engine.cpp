#include "core/run/engine.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/model/weights.h"
#include "core/save/run_files.h"
#include "core/step/run_master.h"

#include <utility>

namespace mr {
namespace fs = std::filesystem;

Engine::Engine(Device& device, RunStore& store, EngineHooks hooks)
    : m_device(device)
    , m_store(store)
    , m_hooks(std::move(hooks))
{
    const LinkBytes link = m_device.linkBytes();
    m_movedBefore = {link.toDevice, link.toHost, 0, 0};
    m_account.begin(nowNs(), {});
}

Engine::~Engine()
{
    requestStop();
    if (m_thread.joinable())
        m_thread.join();
}

Status Engine::start()
{
    RunState ready = RunState::Ready;
    if (!m_state.compare_exchange_strong(ready, RunState::Running))
        return Status::error(ErrorKind::InvalidArgument, "session: the run was started already");
    ThreadOptions options;
    options.name = "engine";
    m_thread = startThread(
        options,
        [this](const std::stop_token& stop) {
            run(stop);
            return Status();
        },
        [this](const Status& status) { closeRun(status); });
    return {};
}

void Engine::requestStop() noexcept
{
    m_stopRequested = true;
    for (RunState from : {RunState::Running, RunState::Paused})
        m_state.compare_exchange_strong(from, RunState::Stopping);
    m_gate.stop();
}

void Engine::answerPause(PauseAnswer answer)
{
    m_gate.answer(std::move(answer));
}

Status Engine::failure() const
{
    const std::lock_guard lock(m_mutex);
    return m_failure;
}

Status Engine::wait()
{
    std::unique_lock lock(m_mutex);
    m_ended.wait(lock, [this] { return m_done; });
    return m_failure;
}

std::int64_t Engine::activeMs() const
{
    return m_resumedMs + (nowNs() - m_startNs) / 1'000'000;
}

CheckpointContext Engine::checkpointContext()
{
    const RunSpec& spec = m_setup.spec;
    return {m_setup.config, m_setup.table, m_body->memory(), m_body->executor(),
        spec.modelDir.empty() ? spec.scratchTokenizer : spec.modelDir, m_uuid, m_data.chatTemplate};
}

void Engine::run(const std::stop_token& stop)
{
    m_startNs = nowNs();
    m_checkpointNs = checkpointClockNs();
    (void)m_load.read(m_startNs); // what was before does not count
    Status ended = guarded("engine", [&] { return train(stop); });
    // A stop while the run was opened again: what it would have gone on from is on disk.
    if (!ended.ok() && ended.kind() == ErrorKind::Cancelled && isStopWanted())
        ended = {};
    closeRun(ended);
}

Status Engine::train(const std::stop_token&)
{
    MR_TRY(startRecorder());
    if (!m_hooks.saveFolder.empty())
        MR_TRY(useFolder(m_hooks.saveFolder));
    startBatches();
    book(IntervalKind::Opening);
    while (!m_isComplete) {
        const Status status = guarded("engine", [this] { return advance(); });
        if (!status.ok())
            MR_TRY(recover(status));
    }
    return {};
}

// From the last step that was done.
void Engine::startBatches()
{
    const RunSpec& spec = m_setup.spec;
    m_batches = BatchStream::start(
        m_data.train, {spec.seqLen, spec.microBatch, spec.accumulate}, m_progress.sampler);
}

// What is due after the last step that was done, and the next one or the end of the run. May be
// called again after it failed and the run was brought back to a step.
Status Engine::advance()
{
    const RunSpec& spec = m_setup.spec;
    StepIndex done = m_progress.step;
    if (m_evaluatedStep < done) {
        MR_TRY(evaluateIfDue(done));
        m_evaluatedStep = done;
    }
    MR_TRY(answerQuestionsAsked());
    if (isCheckpointDue(done))
        MR_TRY(saveCheckpoint(IfUnwritable::Pause));
    // Asked for before the first step it waits for that; with nothing to save it is done.
    const bool isAsked = done > 0 && m_saveRequested.exchange(false);
    if (isAsked && done < spec.steps && m_savedStep != done)
        MR_TRY(saveCheckpoint(IfUnwritable::Report));
    MR_TRY(chooseWhileRunning());
    done = m_progress.step; // an older one if the checkpoint it went on from was broken
    if (done < spec.steps && !m_stopRequested)
        return trainStep(done + 1);
    m_batches->close();
    if (done == spec.steps)
        MR_TRY(checkLastLoss());
    if (m_savedStep != done && m_unsaved.ok())
        MR_TRY(saveCheckpoint(IfUnwritable::Pause));
    else if (m_savedStep == done)
        prune(); // one that was killed between its last checkpoint and this
    if (done == spec.steps && (m_unsaved.ok() || !m_stopRequested))
        MR_TRY(exportModel());
    m_isComplete = true;
    return {};
}

void Engine::closeRun(const Status& status)
{
    if (m_batches)
        m_batches->close();
    if (!status.ok() && m_body)
        m_body->abandon(status);
    const bool finished = status.ok() && m_unsaved.ok() && m_progress.step >= m_setup.spec.steps;
    const Status& reason = status.ok() ? m_unsaved : status;
    const RunStatus end = !status.ok() ? RunStatus::Failed
                          : finished   ? RunStatus::Done
                                       : RunStatus::Stopped;
    const std::string word(name(end));
    dropQuestions();
    if (status.ok())
        learnRates();
    m_sampler.reset(); // joined: nothing comes after the last message
    if (m_recorder) {
        if (finished)
            reportOutcome();
        m_recorder->message(reason.ok() ? EventLevel::Info : EventLevel::Error, word,
            m_progress.step, activeMs(),
            reason.ok() ? std::string("The run is ") + word + "." : reason.message());
        (void)m_recorder->close().ok(); // a failed history was reported; the run folder has it all
    }
    // What the run made is safe, whatever becomes of the history.
    if (const Status told = endHistory(end, reason.ok() ? 0 : 4, reason.message()); !told.ok())
        log(LogLevel::Warning, told.message() + "; that the run is " + word +
                                   " is not in the history. `millrace resume " + m_runDir.string() +
                                   "` brings it up to date");
    m_saveLock = {};
    m_lock = {};
    {
        const std::lock_guard lock(m_mutex);
        m_failure = status;
        // Before wait() can return: who waited asks for the state next.
        m_state = !m_failure.ok() ? RunState::Failed
                  : finished      ? RunState::Finished
                                  : RunState::Stopped;
        m_done = true;
    }
    m_ended.notify_all();
    if (m_hooks.listener)
        m_hooks.listener(m_runId);
}

} // namespace mr
