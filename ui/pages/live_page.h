// The Live page: the run that is going on now, or the last one this window started.
//
// Threads    GUI.
// Ownership  Owns its RunFeed (a thread and a database connection) and its RunView.

#pragma once

#include "bridge/sleep_guard.h"
#include "bridge/ui_services.h"
#include "models/run_snapshot.h"

#include <QString>
#include <QWidget>

class QLabel;
class QPushButton;
class QStackedWidget;

namespace mr::ui {

class RunFeed;
class RunView;

class LivePage final : public QWidget
{
    Q_OBJECT

public:
    explicit LivePage(const UiServices& services, QWidget* parent = nullptr);
    ~LivePage() override;

    // The run to show; 0: none, with the way to start one.
    void showRun(qint64 runId);
    // Takes a snapshot from the feed; tests call it directly.
    void showSnapshot(const mr::ui::RunSnapshotPtr& snapshot);
    RunView* view() const { return m_view; }

public slots:
    // For the run that goes on here: is the machine kept from falling asleep?
    void setSleepState(mr::ui::SleepGuard::State state);
    // New rows of this run were committed (Session's listener, brought to the GUI thread).
    void notify(qint64 runId);

signals:
    void stopRequested();
    void resumeRequested(const QString& runDir);
    void tryRequested(qint64 runId);
    void pauseAnswered(const mr::PauseAnswer& answer);
    void newRunRequested();
    void historyRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    // All widgets; again when the language changes, because then every text is another one.
    void build();
    QWidget* makeEmptyState();

    RunFeed* m_feed = nullptr;
    QWidget* m_body = nullptr;
    RunView* m_view = nullptr;
    QStackedWidget* m_stack = nullptr;
    SleepGuard::State m_sleep = SleepGuard::State::Off;
    QLabel* m_problem = nullptr;
};

} // namespace mr::ui
