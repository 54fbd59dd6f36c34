#include "bridge/run_feed.h"

#include "bridge/run_feed_worker.h"

#include <QMetaObject>

namespace mr::ui {

RunFeed::RunFeed(const UiServices& services, QObject* parent)
    : QObject(parent)
    , m_worker(new RunFeedWorker(*this, services))
{
    qRegisterMetaType<RunSnapshotPtr>();
    qRegisterMetaType<RunRowsPtr>();
    qRegisterMetaType<TimelinePtr>();
    m_thread.setObjectName(QStringLiteral("run-feed"));
    m_worker->moveToThread(&m_thread);
    connect(&m_thread, &QThread::finished, m_worker, &QObject::deleteLater);
    connect(m_worker, &RunFeedWorker::snapshotReady, this, &RunFeed::deliver);
    connect(m_worker, &RunFeedWorker::runsReady, this, &RunFeed::runsReady);
    connect(m_worker, &RunFeedWorker::deletedReady, this, &RunFeed::deletedReady);
    connect(m_worker, &RunFeedWorker::failed, this, &RunFeed::failed);
    connect(m_worker, &RunFeedWorker::timelineReady, this,
        [this](quint64 token, const TimelinePtr& timeline) {
            if (token == m_token)
                emit timelineReady(timeline);
        });
    connect(m_worker, &RunFeedWorker::timelineFailed, this,
        [this](quint64 token, qint64 step, const QString& sentence) {
            if (token == m_token)
                emit timelineFailed(step, sentence);
        });
    m_thread.start();
}

RunFeed::~RunFeed()
{
    ++m_token; // a long read looks at it between blocks
    m_thread.quit();
    m_thread.wait();
}

void RunFeed::watch(qint64 runId)
{
    m_runId = runId;
    const quint64 token = ++m_token;
    QMetaObject::invokeMethod(
        m_worker, [worker = m_worker, token, runId] { worker->watch(token, runId); });
}

void RunFeed::notify(qint64 runId)
{
    if (runId == m_runId && runId != 0)
        poll();
}

void RunFeed::refreshRun()
{
    notify(m_runId);
}

void RunFeed::poll()
{
    if (m_pollWaits.exchange(true))
        return;
    QMetaObject::invokeMethod(m_worker, [this, worker = m_worker] {
        m_pollWaits = false;
        worker->poll();
    });
}

void RunFeed::refreshRuns()
{
    if (m_runsWait.exchange(true))
        return;
    QMetaObject::invokeMethod(m_worker, [this, worker = m_worker] {
        m_runsWait = false;
        worker->readRuns();
    });
}

void RunFeed::refreshDeleted()
{
    QMetaObject::invokeMethod(m_worker, [worker = m_worker] { worker->readDeleted(); });
}

void RunFeed::readTimeline(qint64 step)
{
    const quint64 token = m_token;
    QMetaObject::invokeMethod(
        m_worker, [worker = m_worker, token, step] { worker->readTimeline(token, step); });
}

void RunFeed::deliver(quint64 token, RunSnapshotPtr snapshot)
{
    if (token == m_token)
        emit snapshotReady(std::move(snapshot));
}

} // namespace mr::ui
