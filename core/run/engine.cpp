#include "core/run/engine.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/thread.h"

#include <utility>

namespace mr {
namespace {

EngineHooks hooksOf(Session::Listener listener, OpeningWatch watch)
{
    EngineHooks hooks;
    hooks.listener = std::move(listener);
    hooks.opening = std::move(watch);
    return hooks;
}

Result<std::unique_ptr<Session>> asSession(Result<std::unique_ptr<Engine>> engine)
{
    MR_TRY(engine.status());
    return std::unique_ptr<Session>(std::move(engine).value());
}

} // namespace

Result<std::unique_ptr<Session>> Session::open(const RunSpec& spec, Device& device, RunStore& store,
    Listener listener, OpeningWatch watch, const RunSpec* asked)
{
    EngineHooks hooks = hooksOf(std::move(listener), std::move(watch));
    hooks.asked = asked ? std::optional(*asked) : std::nullopt;
    return asSession(Engine::open(spec, device, store, std::move(hooks)));
}

Result<std::unique_ptr<Session>> Session::resume(const std::string& runDir, Device& device,
    RunStore& store, Listener listener, OpeningWatch watch)
{
    return asSession(
        Engine::resume(runDir, device, store, hooksOf(std::move(listener), std::move(watch))));
}

Result<std::unique_ptr<Engine>> Engine::open(
    const RunSpec& spec, Device& device, RunStore& store, EngineHooks hooks)
{
    auto engine = std::unique_ptr<Engine>(new Engine(device, store, std::move(hooks)));
    MR_TRY(RunOpener(engine->m_run, engine->m_journal, engine->m_replanner).open(spec));
    return engine;
}

Result<std::unique_ptr<Engine>> Engine::resume(
    const std::filesystem::path& runDir, Device& device, RunStore& store, EngineHooks hooks)
{
    auto engine = std::unique_ptr<Engine>(new Engine(device, store, std::move(hooks)));
    RunOpener opener(engine->m_run, engine->m_journal, engine->m_replanner);
    RunResumer resumer(engine->m_run, engine->m_journal, opener, engine->m_replanner,
        engine->m_fallback, engine->m_outcome);
    MR_TRY(resumer.resume(runDir));
    engine->m_steps.noteOpened();
    return engine;
}

Engine::Engine(Device& device, RunStore& store, EngineHooks hooks)
    : m_run(device, store, std::move(hooks))
    , m_journal(m_run)
    , m_outcome(m_run, m_journal)
    , m_fallback(m_run, m_journal)
    , m_saver(m_run, m_journal)
    , m_steps(m_run, m_journal, m_saver, m_outcome)
    , m_maker(m_run, m_saver, m_fallback)
    , m_replanner(m_run, m_journal, m_saver, m_fallback, m_steps, m_maker)
    , m_turns(m_run, m_journal, m_saver, m_maker)
    , m_choice(m_run, m_journal, m_saver, m_replanner)
    , m_answerer(m_run, m_journal)
{
}

Engine::~Engine()
{
    m_run.requestStop();
    if (m_thread.joinable())
        m_thread.join();
}

Status Engine::start()
{
    RunState ready = RunState::Ready;
    if (!m_run.state.compare_exchange_strong(ready, RunState::Running))
        return Status::error(ErrorKind::InvalidArgument, "session: the run was started already");
    ThreadOptions options;
    options.name = "engine";
    m_thread = startThread(
        options,
        [this](const std::stop_token&) {
            run();
            return Status();
        },
        [this](const Status& status) { closeRun(status); });
    return {};
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

void Engine::run()
{
    m_run.startNs = nowNs();
    m_saver.startClock();
    m_choice.begin();
    Status ended = guarded("engine", [this] { return train(); });
    // A stop while the run was opened again: the state it would have gone on from is on disk.
    if (!ended.ok() && ended.kind() == ErrorKind::Cancelled && m_run.isStopWanted())
        ended = {};
    closeRun(ended);
}

Status Engine::train()
{
    MR_TRY(m_journal.start());
    m_replanner.report({});
    if (!m_run.hooks.saveFolder.empty())
        MR_TRY(m_saver.writer().useFolder(m_run.hooks.saveFolder));
    m_steps.startBatches();
    m_journal.book(IntervalKind::Opening);
    while (!m_isComplete) {
        const Status status = guarded("engine", [this] { return advance(); });
        if (!status.ok())
            MR_TRY(m_replanner.recover(status));
    }
    return {};
}

// Does the work that is due after the last step, then takes the next step or ends the run. May be
// called again after it failed and the run was brought back to a step.
Status Engine::advance()
{
    const StepIndex steps = m_run.setup.spec.steps;
    MR_TRY(m_steps.evaluateIfDue());
    MR_TRY(m_answerer.answerAll());
    if (m_saver.isCheckpointDue())
        MR_TRY(m_saver.saveCheckpoint(IfUnwritable::Pause));
    // A request before the first step waits for that step; with nothing to save it is done.
    const StepIndex done = m_run.step();
    const bool isAsked = done > 0 && m_saveRequested.exchange(false);
    if (isAsked && done < steps && !m_saver.isSaved())
        MR_TRY(m_saver.saveCheckpoint(IfUnwritable::Report));
    MR_TRY(m_choice.chooseIfDue());
    MR_TRY(m_turns.takeIfDue());
    // The choice may have gone back to an older step, if the checkpoint it went on from was broken.
    return m_run.step() < steps && !m_run.stopRequested ? m_steps.trainNext() : finish();
}

Status Engine::finish()
{
    const bool isDone = m_run.step() == m_run.setup.spec.steps;
    const Status& unsaved = m_saver.writer().unsaved();
    m_steps.closeBatches();
    if (isDone)
        MR_TRY(m_outcome.checkLastLoss());
    if (m_saver.isSaved())
        m_saver.prune(); // the run was killed between its last checkpoint and this
    else if (unsaved.ok())
        MR_TRY(m_saver.saveCheckpoint(IfUnwritable::Pause));
    if (isDone && (unsaved.ok() || !m_run.stopRequested))
        MR_TRY(m_saver.exportModel());
    m_isComplete = true;
    return {};
}

void Engine::closeRun(const Status& status)
{
    m_steps.closeBatches();
    if (!status.ok() && m_run.body)
        m_run.body->abandon(status);
    const Status& unsaved = m_saver.writer().unsaved();
    const bool finished = status.ok() && unsaved.ok() && m_run.step() >= m_run.setup.spec.steps;
    m_answerer.refuseRest();
    if (status.ok())
        m_choice.learnRates();
    if (m_journal.isStarted() && finished)
        m_outcome.report();
    closeJournal(!status.ok() ? RunStatus::Failed
                 : finished   ? RunStatus::Done
                              : RunStatus::Stopped,
        status.ok() ? unsaved : status);
    m_run.saveLock = {};
    m_run.lock = {};
    publishEnd(status, !status.ok() ? RunState::Failed
                       : finished   ? RunState::Finished
                                    : RunState::Stopped);
}

void Engine::closeJournal(RunStatus end, const Status& reason)
{
    const std::string word(name(end));
    if (m_journal.isStarted())
        m_journal.close(reason.ok() ? EventLevel::Info : EventLevel::Error, word,
            reason.ok() ? "The run is " + word + "." : reason.message());
    // The run's results are safe, even if the history fails.
    const Status told = m_journal.endHistory(end, reason.ok() ? 0 : 4, reason.message());
    if (!told.ok())
        log(LogLevel::Warning, told.message() + "; that the run is " + word +
                                   " is not in the history. `millrace resume " +
                                   m_run.runDir.string() + "` brings it up to date");
}

void Engine::publishEnd(const Status& status, RunState end)
{
    {
        const std::lock_guard lock(m_mutex);
        m_failure = status;
        m_run.state = end; // before wait() can return: its caller asks for the state next
        m_done = true;
    }
    m_ended.notify_all();
    if (m_run.hooks.listener)
        m_run.hooks.listener(m_run.id);
}

} // namespace mr
