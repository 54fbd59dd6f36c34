#include "core/engine/engine.h"

#include "core/base/clock.h"
#include "core/base/thread.h"
#include "core/engine/run_files.h"
#include "core/engine/run_master.h"
#include "core/model/weights.h"

#include <utility>

namespace mr {
namespace fs = std::filesystem;

Engine::Engine(Device& device, RunStore& store, EngineHooks hooks)
    : m_device(device)
    , m_store(store)
    , m_hooks(std::move(hooks))
{
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
    RunState running = RunState::Running;
    m_state.compare_exchange_strong(running, RunState::Stopping);
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
        spec.modelDir.empty() ? spec.scratchTokenizer : spec.modelDir};
}

void Engine::run(const std::stop_token& stop)
{
    m_startNs = nowNs();
    Status ended = guarded("engine", [&] { return train(stop); });
    // A stop while the run was opened again: what it would have gone on from is on disk.
    if (!ended.ok() && ended.kind() == ErrorKind::Cancelled && isStopWanted())
        ended = {};
    closeRun(ended);
}

Status Engine::train(const std::stop_token&)
{
    MR_TRY(startRecorder());
    startBatches();
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
        m_trainSet, {spec.seqLen, spec.microBatch, spec.accumulate}, m_progress.sampler);
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
    const bool isDue = done > 0 && spec.checkpointEvery > 0 && done % spec.checkpointEvery == 0;
    if (isDue && done < spec.steps && m_savedStep != done)
        MR_TRY(saveCheckpoint());
    MR_TRY(chooseWhileRunning());
    done = m_progress.step; // an older one if the checkpoint it went on from was broken
    if (done < spec.steps && !m_stopRequested)
        return trainStep(done + 1);
    m_batches->close();
    if (m_savedStep != done)
        MR_TRY(saveCheckpoint());
    if (done == spec.steps)
        MR_TRY(exportModel());
    m_isComplete = true;
    return {};
}

Status Engine::saveCheckpoint()
{
    const std::int64_t begin = nowNs();
    MR_TRY(m_body->plans().finishLateParts());
    m_progress.activeMs = activeMs();
    m_progress.carry = m_body->plans().carry();
    // A killed run goes on from the checkpoint: the records up to it must be there too. A history
    // that fails was reported, and is no reason to lose the checkpoint.
    (void)m_recorder->flush().ok();
    auto written = writeCheckpoint(checkpointContext(), m_runDir, m_progress);
    if (!written.ok() && m_progress.step < m_setup.spec.steps && !m_stopRequested) {
        // The run goes on: what it has learned is still in memory, and the older checkpoints stay.
        m_recorder->message(EventLevel::Error, "checkpoint_failed", m_progress.step, activeMs(),
            "The checkpoint could not be written: " + written.status().message());
        return {};
    }
    if (!written.ok())
        return written.status();
    CheckpointRow row;
    row.step = m_progress.step;
    row.path = written.value().path.string();
    row.bytes = static_cast<std::int64_t>(written.value().bytes);
    row.state = "complete";
    row.createdMs = wallClockMs();
    row.writeMs = (nowNs() - begin) / 1'000'000;
    m_watch.saved(1e-9 * static_cast<double>(nowNs() - begin));
    MR_TRY(m_store.addCheckpoint(m_runId, row, written.value().manifestHash));
    m_recorder->message(EventLevel::Info, "checkpoint", m_progress.step, activeMs(),
        "Checkpoint of step " + std::to_string(m_progress.step) + " written.");
    for (const fs::path& removed : pruneCheckpoints(m_runDir, m_setup.spec.keepCheckpoints))
        // A history that the run was moved to never knew its older checkpoints.
        (void)m_store.setCheckpointState(removed.string(), "deleted").ok();
    m_savedStep = m_progress.step;
    if (m_hooks.onCheckpoint) {
        m_hooks.onCheckpoint(written.value(), m_progress);
    }
    return {};
}

Status Engine::exportModel()
{
    PlanSequence& plans = m_body->plans();
    MR_TRY(plans.finishLateParts());
    MR_TRY(plans.applyPending(m_setup.spec.clipNorm)); // the checkpoint has them as pending
    auto state = stateMaster(m_body->executor(), m_body->memory());
    MR_TRY(state.status());
    const CheckpointContext context = checkpointContext();
    return saveModel(m_runDir / "model", m_setup.config, m_setup.table, *state.value(),
        m_body->memory().compute() == DType::F32 ? ExportType::F32 : ExportType::BF16,
        context.carryFrom);
}

void Engine::closeRun(const Status& status)
{
    if (m_batches)
        m_batches->close();
    if (!status.ok() && m_body)
        m_body->abandon(status);
    const bool finished = status.ok() && m_progress.step >= m_setup.spec.steps;
    const char* word = !status.ok() ? "failed" : finished ? "done" : "stopped";
    m_sampler.reset(); // joined: nothing comes after the last message
    if (m_recorder) {
        m_recorder->message(status.ok() ? EventLevel::Info : EventLevel::Error, word,
            m_progress.step, activeMs(),
            status.ok() ? std::string("The run is ") + word + "." : status.message());
        (void)m_recorder->close().ok(); // a failed history was reported; the run folder has it all
    }
    const Status closed = m_store.endRun(m_runId, word, status.ok() ? 0 : 4, status.message());
    {
        const std::lock_guard lock(m_mutex);
        m_failure = status.ok() ? closed : status;
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
