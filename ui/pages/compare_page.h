// The Compare page: two runs beside each other, one complete or going on, the other too or waiting.
//
// Threads    GUI.
// Ownership  Owns a RunFeed for each run (a thread and a database connection) and its CompareView.

#pragma once

#include "bridge/ui_services.h"
#include "models/run_snapshot.h"

#include <QString>
#include <QWidget>

#include <array>

class QLabel;
class QStackedWidget;

namespace mr::ui {

class CompareView;
class RunFeed;

class ComparePage final : public QWidget
{
    Q_OBJECT

public:
    explicit ComparePage(const UiServices& services, QWidget* parent = nullptr);

    // 0: has not begun. `waitingName`: how the second will be called until then.
    void compare(qint64 first, qint64 second, const QString& waitingName = {});
    qint64 runId(int run) const { return m_ids.at(static_cast<std::size_t>(run)); }
    // Why the second run does not start.
    void showProblem(const QString& sentence);
    // Takes a snapshot from the feeds; tests call it directly.
    void showSnapshot(int run, const mr::ui::RunSnapshotPtr& snapshot);
    CompareView* view() const { return m_view; }

public slots:
    void notify(qint64 runId); // new rows of this run were committed

signals:
    void openRequested(qint64 runId, bool isLive);
    void newRunRequested();
    void historyRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    // All widgets; again when the language changes, because then every text is another one.
    void build();
    QWidget* makeEmptyState();
    void showRuns();

    std::array<RunFeed*, 2> m_feeds{};
    std::array<qint64, 2> m_ids{};
    std::array<RunSnapshotPtr, 2> m_runs;
    QString m_waitingName;
    QString m_problemShown;
    QWidget* m_body = nullptr;
    CompareView* m_view = nullptr;
    QStackedWidget* m_stack = nullptr;
    QLabel* m_problem = nullptr;
};

} // namespace mr::ui
