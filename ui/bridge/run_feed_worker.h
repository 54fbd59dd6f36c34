// The half of RunFeed that lives on the worker thread: SQL in, snapshots out.
//
// Threads  Everything but the constructor: the feed's thread. Reads RunFeed::m_token only.

#pragma once

#include "bridge/run_feed.h"

#include <millrace/status.h>

#include <QObject>
#include <QString>

#include <memory>

class QTimer;

namespace mr::ui {

class RunFeedWorker final : public QObject
{
    Q_OBJECT

public:
    RunFeedWorker(const RunFeed& feed, UiServices services);
    ~RunFeedWorker() override;

    void watch(quint64 token, qint64 runId);
    void poll();
    void readRuns();
    void readDeleted();
    void readTimeline(quint64 token, qint64 step);

signals:
    void snapshotReady(quint64 token, mr::ui::RunSnapshotPtr snapshot);
    void runsReady(mr::ui::RunRowsPtr runs);
    void deletedReady(mr::ui::RunRowsPtr runs);
    void timelineReady(quint64 token, mr::ui::TimelinePtr timeline);
    void timelineFailed(quint64 token, qint64 step, const QString& sentence);
    void failed(const QString& sentence);

private:
    Status open();
    Status read(bool& changed);
    Status readSteps(bool& changed);
    Status dropRewrittenSteps();
    Status readLists(bool& changed);
    Status readMachine(bool& changed);
    void readPlan();
    void startOver();
    bool stale() const { return m_feed.m_token != m_token; }
    void report(const Status& status);

    const RunFeed& m_feed;
    const UiServices m_services;
    std::unique_ptr<RunReader> m_reader;
    QTimer* m_timer = nullptr;
    quint64 m_token = 0;
    qint64 m_runId = 0;
    RunSnapshot m_now; // working copy; each snapshot copies it
    std::string m_planJson;
    QString m_lastError; // reported once, not twice a second
};

} // namespace mr::ui
