// The window and its runs: starting, comparing, resuming, and how each ends.

#include "bridge/app_log.h"
#include "bridge/run_feed.h"
#include "bridge/run_queue.h"
#include "bridge/session_controller.h"
#include "main_window.h"
#include "pages/compare_page.h"
#include "pages/history_page.h"
#include "pages/live_page.h"
#include "pages/new_run_page.h"
#include "text/units.h"
#include "widgets/notice_bar.h"
#include "widgets/run_tray.h"
#include "widgets/status_strip.h"

#include <utility>

namespace mr::ui {

void MainWindow::startRun(const RunSpec& spec)
{
    RunSpec own = spec;
    own.database = m_services.database;
    if (!m_controller->open(own)) {
        m_notice->showError(
            tr("A run is active. Stop it on the Live page before starting another."));
        return;
    }
    m_startedFrom = page();
    m_live->showRun(0);
    showPage(Page::Live);
    showOpening(tr("Opening the model and the dataset…"));
}

void MainWindow::startComparison(const std::vector<RunSpec>& runs)
{
    std::vector<RunSpec> own = runs;
    for (RunSpec& spec : own)
        spec.database = m_services.database;
    if (!m_queue->start(std::move(own))) {
        m_notice->showError(
            tr("A run is active. Stop it on the Live page before starting another."));
        return;
    }
    m_startedFrom = page();
    m_queueFirst = 0;
    m_live->showRun(0);
    m_compare->compare(0, 0, m_queue->nextName());
    showPage(Page::Compare);
    showOpening(tr("Opening the model and the dataset…"));
}

void MainWindow::onQueueStarted(qint64 runId, int position)
{
    if (position == 0) {
        m_queueFirst = runId;
        m_compare->compare(runId, 0, m_queue->nextName());
    } else if (m_compare->runId(0) == m_queueFirst) { // unless others are looked at now
        m_compare->compare(m_queueFirst, runId);
    }
}

void MainWindow::onDropped(
    const QString& next, const QString& before, RunState state, const QString& message)
{
    QString sentence;
    if (state == RunState::Failed)
        sentence = tr("“%1” was not started, because “%2” failed. %3").arg(next, before, message);
    else if (state == RunState::Finished)
        sentence = tr("“%1” was not started, because another run was.").arg(next);
    else
        sentence = tr("“%1” was not started, because “%2” was stopped.").arg(next, before);
    m_notice->showError(sentence);
    m_compare->showProblem(sentence);
}

void MainWindow::resumeRun(const QString& runDir)
{
    if (!m_controller->resume(runDir)) {
        m_notice->showError(
            tr("A run is active. Stop it on the Live page before resuming another."));
        return;
    }
    m_startedFrom = page();
    m_live->showRun(0);
    showPage(Page::Live);
    showOpening(tr("Opening the run…"));
}

// All of its settings but its places: it gets a folder of its own.
void MainWindow::newRunLike(const QString& specJson)
{
    Result<RunSpec> read = runSpecFromJson(specJson.toStdString());
    if (!read.ok()) {
        m_notice->showError(tr("The settings of this run cannot be read. %1")
                                .arg(QString::fromStdString(read.status().message())));
        return;
    }
    RunSpec spec = std::move(read).value();
    spec.outDir.clear();
    spec.saveDir.clear();
    spec.database.clear();
    m_newRun->setSpec(spec);
    showPage(Page::NewRun);
}

void MainWindow::showOpening(const QString& text)
{
    m_opening = text;
    m_notice->showStoppable(text);
}

// Also of a run that opens again while it goes on: then the Live page has its stop.
void MainWindow::showFilling(quint64 doneBytes, quint64 allBytes)
{
    const SessionController::Phase phase = m_controller->phase();
    const bool isDone = doneBytes >= allBytes;
    const QString text = tr("Preparing files on disk: %1 of %2")
                             .arg(memoryText(static_cast<double>(doneBytes)),
                                 memoryText(static_cast<double>(allBytes)));
    if (phase == SessionController::Phase::Opening)
        m_notice->showStoppable(isDone ? m_opening : text);
    else if (phase == SessionController::Phase::Running && isDone)
        m_notice->hide();
    else if (phase == SessionController::Phase::Running)
        m_notice->showBusy(text);
}

void MainWindow::openRun(qint64 runId, bool isLive)
{
    if (isLive) {
        m_live->showRun(runId);
        showPage(Page::Live);
        return;
    }
    showPage(Page::History);
    m_history->openRun(runId);
}

void MainWindow::onRunStarted(qint64 runId)
{
    AppLog::write(QStringLiteral("run %1 began").arg(runId));
    m_notice->hide();
    m_live->showRun(runId);
    m_feed->watch(runId);
    m_feed->refreshRuns();
    m_history->refresh();
}

void MainWindow::onRunEnded(qint64 runId, RunState state, const QString& message)
{
    const char* how = state == RunState::Finished  ? "is done"
                      : state == RunState::Stopped ? "was stopped"
                                                   : "failed:";
    AppLog::write(QStringLiteral("run %1 %2 %3").arg(runId).arg(QLatin1String(how)).arg(message));
    m_notice->hide();
    endCloseQuestion();
    m_feed->watch(0);
    m_status->setSnapshot(nullptr);
    m_tray->setSnapshot(nullptr);
    if (runId != 0)
        m_live->notify(runId);
    m_feed->refreshRuns();
    m_history->refresh();
    if (state == RunState::Failed)
        m_notice->showError(tr("The run failed. %1").arg(message));
    if (m_closeAfterRun)
        close();
}

// The run that it asks about has ended; that of a run that follows stays.
void MainWindow::endCloseQuestion()
{
    if (m_closeQuestion != nullptr && !m_controller->busy() && m_queue->nextName().isEmpty())
        m_closeQuestion->close();
}

void MainWindow::onFailed(const QString& message)
{
    AppLog::write(QStringLiteral("a run could not begin: ") + message);
    m_notice->showError(message);
    endCloseQuestion();
    // The second of two runs may fail long after the user left the page it was started from.
    if (m_queue->active() && m_queue->nextName().isEmpty()) {
        m_compare->showProblem(message);
    } else {
        m_newRun->showStartProblem(message);
        showPage(m_startedFrom);
    }
    m_feed->refreshRuns();
    m_history->refresh();
    if (m_closeAfterRun)
        close();
}

} // namespace mr::ui
