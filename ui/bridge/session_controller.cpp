#include "bridge/session_controller.h"

#include <utility>

namespace mr::ui {

SessionController::SessionController(UiServices services, QObject* parent)
    : QObject(parent)
    , m_services(std::move(services))
{
    qRegisterMetaType<mr::RunState>();
}

SessionController::~SessionController()
{
    requestStop();
    if (m_thread.joinable())
        m_thread.join();
}

bool SessionController::open(const RunSpec& spec)
{
    return begin([open = m_services.open, spec](Session::Listener listener, OpeningWatch watch) {
        return open(spec, std::move(listener), std::move(watch));
    });
}

bool SessionController::resume(const QString& runDir)
{
    return begin(
        [resume = m_services.resume, dir = runDir.toStdString()](Session::Listener listener,
            OpeningWatch watch) { return resume(dir, std::move(listener), std::move(watch)); });
}

void SessionController::requestStop()
{
    if (m_phase == Phase::Idle)
        return;
    m_stopWanted = true;
    setPhase(Phase::Stopping);
    const std::scoped_lock lock(m_mutex);
    if (m_session)
        m_session->requestStop();
}

void SessionController::answerPause(const PauseAnswer& answer)
{
    const std::scoped_lock lock(m_mutex);
    if (m_session)
        m_session->answerPause(answer);
}

Status SessionController::ask(const Question& question)
{
    const std::scoped_lock lock(m_mutex);
    if (m_session)
        return m_session->ask(question);
    return Status::error(ErrorKind::InvalidArgument, tr("The run has ended.").toStdString());
}

void SessionController::stopAnswer()
{
    const std::scoped_lock lock(m_mutex);
    if (m_session)
        m_session->stopAnswer();
}

void SessionController::saveNow()
{
    const std::scoped_lock lock(m_mutex);
    if (m_session)
        m_session->saveNow();
}

bool SessionController::begin(Opener opener)
{
    if (busy())
        return false;
    if (m_thread.joinable())
        m_thread.join(); // its last act was to post onFinished, so this does not wait
    m_stopWanted = false;
    m_changePosted = false;
    setPhase(Phase::Opening);
    m_thread = std::thread([this, opener = std::move(opener)] { work(opener); });
    return true;
}

Session::Listener SessionController::makeListener()
{
    // Called on the telemetry thread. The session is destroyed before this object, so `this` is
    // valid; one posted call stands for all that arrive until the UI has handled it.
    return [this](std::int64_t runId) {
        if (m_changePosted.exchange(true))
            return;
        QMetaObject::invokeMethod(
            this,
            [this, runId] {
                m_changePosted = false;
                emit runChanged(runId);
            },
            Qt::QueuedConnection);
    };
}

// Called on m_thread, or on the engine's, which ends before this object does.
OpeningWatch SessionController::makeWatch()
{
    OpeningWatch watch;
    watch.isCancelled = [this] { return m_stopWanted.load(); };
    watch.onScratchFill = [this](std::uint64_t done, std::uint64_t all) {
        QMetaObject::invokeMethod(
            this, [this, done, all] { emit scratchFilled(done, all); }, Qt::QueuedConnection);
    };
    return watch;
}

void SessionController::work(const Opener& opener)
{
    const auto finish = [this](qint64 runId, RunState state, const Status& status) {
        QMetaObject::invokeMethod(
            this,
            [this, runId, state, text = QString::fromStdString(status.message())] {
                onFinished(runId, state, text);
            },
            Qt::QueuedConnection);
    };

    Result<std::unique_ptr<Session>> opened = opener(makeListener(), makeWatch());
    if (!opened.ok()) {
        const bool isStopped = opened.status().kind() == ErrorKind::Cancelled;
        finish(0, isStopped ? RunState::Stopped : RunState::Failed, opened.status());
        return;
    }
    if (m_stopWanted) {
        finish(0, RunState::Stopped, {});
        return;
    }
    Session* session = nullptr;
    {
        const std::scoped_lock lock(m_mutex);
        m_session = std::move(opened).value();
        session = m_session.get();
        // A stop that came between the check above and here found no session to tell.
        if (m_stopWanted)
            session->requestStop();
    }
    Status status = session->start();
    const qint64 runId = session->runId();
    if (status.ok()) {
        QMetaObject::invokeMethod(
            this, [this, runId] { onStarted(runId); }, Qt::QueuedConnection);
        status = session->wait();
    }
    const RunState state = status.ok() ? session->state() : RunState::Failed;
    std::unique_ptr<Session> ended;
    {
        const std::scoped_lock lock(m_mutex);
        ended = std::move(m_session);
    }
    ended.reset(); // joins the engine's threads: never on the UI thread
    finish(runId, state, status);
}

void SessionController::setPhase(Phase phase)
{
    if (m_phase == phase)
        return;
    m_phase = phase;
    emit phaseChanged(phase);
}

void SessionController::onStarted(qint64 runId)
{
    m_runId = runId;
    if (m_phase == Phase::Opening)
        setPhase(Phase::Running);
    emit runStarted(runId);
}

void SessionController::onFinished(qint64 runId, RunState state, const QString& message)
{
    m_runId = 0;
    setPhase(Phase::Idle);
    if (runId == 0 && state == RunState::Failed)
        emit failed(message);
    else
        emit runEnded(runId, state, message);
}

} // namespace mr::ui
