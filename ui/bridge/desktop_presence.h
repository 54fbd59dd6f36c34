// DesktopPresence: shows a run to the desktop. A message appears when the run is done, has failed
// or waits, and the machine stays awake while it trains.
//
// Threads    UI thread.
// Ownership  Borrows the controller, which may be destroyed first.
// Order      Receives the end of a run before the window forgets the run.

#pragma once

#include "bridge/session_controller.h"
#include "bridge/sleep_guard.h"
#include "models/run_snapshot.h"

#include <QDBusConnection>
#include <QObject>

namespace mr::ui {

class Notifier;

// The two buses of the desktop; either may not be there.
struct DesktopBuses {
    QDBusConnection system = QDBusConnection::systemBus();
    QDBusConnection session = QDBusConnection::sessionBus();
};

class DesktopPresence final : public QObject
{
    Q_OBJECT

public:
    explicit DesktopPresence(
        SessionController& controller, QObject* parent = nullptr, const DesktopBuses& buses = {});

    // Snapshot of the run that is going on; null: none is.
    void setSnapshot(const mr::ui::RunSnapshotPtr& snapshot);
    SleepGuard* sleep() const { return m_sleep; }
    Notifier* notifier() const { return m_notifier; }

signals:
    void openRequested(qint64 runId); // 0: no run in particular

private:
    void onEnded(qint64 runId, RunState state, const QString& message);
    void onFailed(const QString& message);
    void onAboutToSleep();
    void followPause(bool isPaused);
    QString runName() const;

    SessionController& m_controller;
    Notifier* m_notifier;
    SleepGuard* m_sleep;
    RunSnapshotPtr m_snapshot;
    bool m_isPaused = false;
    qint64 m_saveAskedMs = 0; // for a sleep that waits; 0: none does
};

} // namespace mr::ui
