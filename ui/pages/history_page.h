// The History page: every run as a table; one of them opened below with the charts of the Live
// page.
//
// Threads    GUI.
// Ownership  Owns its RunFeed, its models and its RunView. Columns are kept in QSettings.

#pragma once

#include "bridge/ui_services.h"
#include "models/run_snapshot.h"

#include <QString>
#include <QWidget>

#include <vector>

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSplitter;
class QStackedWidget;
class QTableView;

namespace mr::ui {

class RunFeed;
class RunFilterModel;
class RunTableModel;
class RunView;

class HistoryPage final : public QWidget
{
    Q_OBJECT

public:
    explicit HistoryPage(const UiServices& services, QWidget* parent = nullptr);
    ~HistoryPage() override;

    void openRun(qint64 runId);
    // What the feed delivers; tests call them directly.
    void setRuns(const mr::ui::RunRowsPtr& runs);
    void showSnapshot(const mr::ui::RunSnapshotPtr& snapshot);
    QTableView* table() const { return m_table; }
    RunView* view() const { return m_view; }

public slots:
    void refresh(); // reads the list again
    // New rows of this run were committed.
    void notify(qint64 runId);

signals:
    void resumeRequested(const QString& runDir);
    void newRunRequested();
    void compareRequested(qint64 first, qint64 second); // the older first

protected:
    void changeEvent(QEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    // All widgets; again when the language changes, because then every text is another one.
    void build();
    void makeFilterBar();
    void makeTable();
    QWidget* makeEmptyState();
    void showContextMenu(const QPoint& at);
    void updateState();
    void closeRun();
    void openSelected();
    void resumeSelected();
    void compareSelected();
    std::vector<qint64> selectedIds() const; // ascending
    void copySelection(QChar separator) const;
    void saveLayout() const;
    const RunRow* selectedRun() const;

    RunFeed* m_feed = nullptr;
    RunTableModel* m_runs = nullptr;
    RunFilterModel* m_filtered = nullptr;
    QLabel* m_problem = nullptr;
    QLineEdit* m_text = nullptr;
    QComboBox* m_status = nullptr;
    QLabel* m_count = nullptr;
    QPushButton* m_open = nullptr;
    QPushButton* m_resume = nullptr;
    QPushButton* m_compare = nullptr;
    QWidget* m_body = nullptr;
    QWidget* m_bar = nullptr;
    QTableView* m_table = nullptr;
    QLabel* m_noMatch = nullptr;
    QStackedWidget* m_stack = nullptr;
    QSplitter* m_splitter = nullptr;
    RunView* m_view = nullptr;
    bool m_splitterRestored = false;
};

} // namespace mr::ui
