// The History page: every run as a table; tags and note of the chosen ones beside it; one of them
// opened below with the charts of the Live page; the bin in place of the table.
//
// Threads    GUI.
// Ownership  Owns its RunFeed, its RunEditor and its RunView.

#pragma once

#include "bridge/ui_services.h"
#include "models/run_snapshot.h"
#include "pages/export_dialog.h"

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
class QToolButton;

namespace mr::ui {

class BinView;
class RunEditor;
class RunFeed;
class RunList;
class RunNotes;
class RunView;
class Toast;

class HistoryPage final : public QWidget
{
    Q_OBJECT

public:
    explicit HistoryPage(const UiServices& services, QWidget* parent = nullptr);
    ~HistoryPage() override;

    void openRun(qint64 runId);
    // Called by the feed; tests call them directly.
    void setRuns(const mr::ui::RunRowsPtr& runs);
    void showSnapshot(const mr::ui::RunSnapshotPtr& snapshot);
    void setDeletedRuns(const mr::ui::RunRowsPtr& runs);
    QTableView* table() const;
    RunView* view() const { return m_view; }
    RunNotes* notes() const { return m_notes; }
    BinView* bin() const { return m_bin; }
    Toast* toast() const { return m_toast; }
    RunEditor* editor() const { return m_editor; }
    void showBin(bool on);

public slots:
    // Shows the chosen run's folder in the desktop's file manager; without one its path is said.
    void showFolder();
    void refresh(); // reads the list and the open run again
    // New rows of this run were committed.
    void notify(qint64 runId);

signals:
    void resumeRequested(const QString& runDir);
    void tryRequested(qint64 runId);
    void exportRequested(const mr::ui::ExportSubject& subject);
    void newRunRequested();
    // A RunSpec: the settings asked for, if the history knows them, else all resolved settings.
    void newRunLikeRequested(const QString& specJson);
    void compareRequested(qint64 first, qint64 second); // the older first
    void edited(); // names or the set of runs: lists elsewhere are out of date

protected:
    void changeEvent(QEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    // All widgets; again when the language changes, because then every text is another one.
    void build();
    void makeFilterBar();
    void makeTable();
    void makeEditing();
    void makeKeys();
    void wireEditor();
    QWidget* makeEmptyState();
    void showContextMenu(const QPoint& at);
    void updateState();
    void closeRun();
    void openSelected();
    void resumeSelected();
    void repeatSelected();
    void compareSelected();
    void deleteSelected();
    void exportSelected();
    void editNote(QWidget* field);
    void onEdited();
    void saveLayout() const;

    RunFeed* m_feed = nullptr;
    RunEditor* m_editor = nullptr;
    QLabel* m_problem = nullptr;
    QLineEdit* m_text = nullptr;
    QComboBox* m_status = nullptr;
    QLabel* m_count = nullptr;
    QPushButton* m_open = nullptr;
    QPushButton* m_resume = nullptr;
    QPushButton* m_compare = nullptr;
    QWidget* m_body = nullptr;
    QWidget* m_bar = nullptr;
    RunList* m_table = nullptr;
    QToolButton* m_notesShown = nullptr;
    QPushButton* m_binShown = nullptr;
    QPushButton* m_emptyBin = nullptr; // the way there if nothing else is left
    RunNotes* m_notes = nullptr;
    BinView* m_bin = nullptr;
    Toast* m_toast = nullptr;
    QLabel* m_noMatch = nullptr;
    QStackedWidget* m_stack = nullptr;
    QSplitter* m_splitter = nullptr;
    RunView* m_view = nullptr;
    bool m_splitterRestored = false;
};

} // namespace mr::ui
