// SessionController: starts, resumes and stops the one run of this program, off the UI thread.
//
// Opening a session reads a model and a dataset, and closing one waits for threads; both happen on
// a thread of this class. The progress of a run comes from the run store, not from here.
//
// Threads    UI thread. Signals are emitted there. The session lives on the controller's thread.
// Ownership  Owns the Session. The destructor asks the run to stop and waits until it has saved.
// Errors     A run that cannot be opened arrives as failed(); a later error, as runEnded().

#pragma once

#include "bridge/ui_services.h"

#include <QObject>
#include <QString>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

namespace mr::ui {

class SessionController final : public QObject
{
    Q_OBJECT

public:
    enum class Phase { Idle, Opening, Running, Stopping };
    Q_ENUM(Phase)

    explicit SessionController(UiServices services, QObject* parent = nullptr);
    ~SessionController() override;

    Phase phase() const { return m_phase; }
    bool busy() const { return m_phase != Phase::Idle; }
    qint64 runId() const { return m_runId; } // 0: no run is active
    // Was a stop asked for, of the run that is active or of the last one?
    bool stopRequested() const { return m_stopWanted; }

    // False, and nothing happens, while a run is active.
    bool open(const RunSpec& spec);
    bool resume(const QString& runDir);
    // Finishes the current step, saves, ends: runEnded() follows, of run 0 if it was not open yet.
    // Does nothing when idle.
    void requestStop();
    void answerPause(const mr::PauseAnswer& answer);
    // InvalidArgument while no run goes on; else as Session::ask().
    Status ask(const mr::Question& question);
    void stopAnswer();
    void saveNow(); // a checkpoint after this step; the run goes on

signals:
    void phaseChanged(mr::ui::SessionController::Phase phase);
    void runStarted(qint64 runId);
    void runChanged(qint64 runId); // new rows are in the store; at most ten times a second
    // Progress of the scratch file while a run opens; at most ten times a second.
    void scratchFilled(quint64 doneBytes, quint64 allBytes);
    void runEnded(qint64 runId, mr::RunState state, const QString& message);
    void failed(const QString& message);

private:
    using Opener = std::function<Result<std::unique_ptr<Session>>(Session::Listener, OpeningWatch)>;

    bool begin(Opener opener);
    void work(const Opener& opener); // on m_thread
    Session::Listener makeListener();
    OpeningWatch makeWatch();
    void setPhase(Phase phase);
    void onStarted(qint64 runId);
    void onFinished(qint64 runId, RunState state, const QString& message);

    // Constant after construction.
    UiServices m_services;

    // Atomics shared with m_thread and the telemetry thread.
    std::atomic<bool> m_stopWanted = false;
    std::atomic<bool> m_changePosted = false;

    std::mutex m_mutex;
    std::unique_ptr<Session> m_session; // guarded by m_mutex

    // UI thread only.
    Phase m_phase = Phase::Idle;
    qint64 m_runId = 0;
    std::thread m_thread;
};

} // namespace mr::ui
