// RowChecksDialog: every row of a dataset is checked, each finding is a list of its rows, and the
// rows of ticked findings are left out of the run. The file is never changed.
//
// Threads    GUI; the checks run on a worker, and a timer looks at how far they are.
// Ownership  Deletes itself when it is closed. Closing stops the checks.

#pragma once

#include "bridge/background.h"
#include "bridge/ui_services.h"

#include <QDialog>
#include <QTimer>

#include <memory>
#include <vector>

class QLabel;
class QListWidget;
class QListWidgetItem;
class QPushButton;
class QTableView;

namespace mr::ui {

class CheckedRowTable;
class MessageLabel;

class RowChecksDialog final : public QDialog
{
    Q_OBJECT

public:
    // Checks all rows of `request`; those of `request.source.excluded` are ticked.
    RowChecksDialog(const UiServices& services, CheckRequest request, QWidget* parent);
    ~RowChecksDialog() override;

    QListWidget* findings() const { return m_findings; }
    CheckedRowTable* rows() const { return m_rows; }
    MessageLabel* message() const { return m_message; }
    QPushButton* apply() const { return m_apply; }
    bool busy() const { return m_work != nullptr; }

signals:
    // The rows to leave out, and the size of the file that was checked.
    void chosen(const mr::RowList& rows, quint64 fileBytes);

private:
    struct Work; // shared with the worker

    QWidget* makeMiddle();
    QWidget* makeButtons();
    void makeTable();
    void run();
    void look();
    void show(Result<DataChecks> done);
    void addFinding(RowCheck check, const std::vector<CheckedRow>& rows);
    void showLengths();
    void showFinding();
    void showCount();
    RowList ticked() const;

    UiServices m_services;
    CheckRequest m_request; // nothing is excluded
    RowList m_before;       // excluded when the dialog opened
    quint64 m_fileBytes;
    DataChecks m_checks;
    MessageLabel* m_message;
    QLabel* m_lengths;
    QListWidget* m_findings;
    QLabel* m_help;
    CheckedRowTable* m_rows;
    QTableView* m_table;
    QLabel* m_count;
    QPushButton* m_apply;
    LatestOnly<Result<std::vector<RowText>>> m_texts;
    std::shared_ptr<Work> m_work; // null: the checks are done
    QTimer m_timer;
};

} // namespace mr::ui
