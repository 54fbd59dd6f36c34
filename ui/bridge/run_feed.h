// RunFeed: reads the history database on its own thread and hands finished snapshots to the window.
//
// A live run and an old one take the same path. New rows are looked for when notify() says so (at
// most ten times a second) and twice a second while the run has not ended.
//
// Threads    Public functions and signals: the GUI thread. SQL runs only on the worker.
// Ownership  Owns the worker thread and its RunReader; the destructor joins.
// Errors     failed() carries a sentence; the feed keeps trying.

#pragma once

#include "bridge/ui_services.h"
#include "models/run_snapshot.h"
#include "models/step_timeline_ptr.h"

#include <QObject>
#include <QString>
#include <QThread>

#include <atomic>
#include <memory>

namespace mr::ui {

class RunFeedWorker;

class RunFeed final : public QObject
{
    Q_OBJECT

public:
    // Keeps copies of services.openReader, planFromJson and database.
    explicit RunFeed(const UiServices& services, QObject* parent = nullptr);
    ~RunFeed() override;

    // Shows this run from now on; 0 shows none. Results of another run that are still on their way
    // are dropped.
    void watch(qint64 runId);
    qint64 runId() const { return m_runId; }

public slots:
    // New rows of `runId` were committed. Cheap; calls that come while one waits are merged.
    void notify(qint64 runId);
    // Rows of the watched run that no notice comes of: another program wrote them, or the run has
    // ended.
    void refreshRun();
    // Asks for runsReady().
    void refreshRuns();
    // Asks for deletedReady().
    void refreshDeleted();
    // Asks for timelineReady() or timelineFailed() of a kept step of the watched run.
    void readTimeline(qint64 step);

signals:
    void snapshotReady(mr::ui::RunSnapshotPtr snapshot);
    void runsReady(mr::ui::RunRowsPtr runs);
    void deletedReady(mr::ui::RunRowsPtr runs);
    void timelineReady(mr::ui::TimelinePtr timeline);
    void timelineFailed(qint64 step, const QString& sentence);
    void failed(const QString& sentence);

private:
    friend class RunFeedWorker;

    void deliver(quint64 token, RunSnapshotPtr snapshot);
    void poll();

    QThread m_thread;
    RunFeedWorker* m_worker = nullptr; // lives on m_thread, deleted there
    qint64 m_runId = 0;
    // Self-synchronising: which watch() call the worker should serve; a waiting poll.
    std::atomic<quint64> m_token{0};
    std::atomic<bool> m_pollWaits{false};
    std::atomic<bool> m_runsWait{false};
};

} // namespace mr::ui
