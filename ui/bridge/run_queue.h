// RunQueue: runs that follow each other through the one session of this program.
//
// Two policies that are compared cannot run at the same time: they would share the link, the memory
// and the cores, and each would wait for the other. So the second starts when the first is done. If
// the first fails or is stopped there is nothing left to compare with, and the second is dropped.
//
// Threads    UI thread.
// Ownership  Borrows the controller, which may be destroyed first.
// Errors     dropped() says which run will not start, and why.
// Order      The controller's own listeners receive an end before the next run starts.

#pragma once

#include "bridge/session_controller.h"

#include <QObject>
#include <QString>

#include <cstddef>
#include <string>
#include <vector>

namespace mr::ui {

class RunQueue final : public QObject
{
    Q_OBJECT

public:
    explicit RunQueue(SessionController& controller, QObject* parent = nullptr);

    // Starts the first. False, and nothing happens, while a run is active or waits.
    bool start(std::vector<RunSpec> runs);
    // Forgets those that wait, without a word; the one that is active goes on.
    void clear();
    bool active() const { return !m_runs.empty(); }
    // Name of the run that starts after the active one; empty: none does.
    QString nextName() const;

signals:
    void started(qint64 runId, int position);
    // `next` will not start, because `before` ended in `state`; Finished: another run took its
    // place.
    void dropped(
        const QString& next, const QString& before, mr::RunState state, const QString& message);

private:
    void onStarted(qint64 runId);
    void onEnded(RunState state, const QString& message);

    SessionController& m_controller;
    std::vector<RunSpec> m_runs;
    std::size_t m_position = 0; // index of the active run
};

} // namespace mr::ui
