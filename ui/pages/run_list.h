// RunList: runs as a table, of the history or of its bin. Columns are kept in QSettings.
//
// Threads    GUI.
// Ownership  Owns its models.

#pragma once

#include "models/run_snapshot.h"

#include <QKeySequence>
#include <QTableView>

#include <functional>
#include <vector>

namespace mr::ui {

class RunFilterModel;
class RunTableModel;

class RunList final : public QTableView
{
    Q_OBJECT

public:
    enum class Place { History, Bin };

    explicit RunList(Place place, QWidget* parent = nullptr);
    ~RunList() override;

    // Keeps the selection.
    void setRuns(const mr::ui::RunRowsPtr& runs);
    RunTableModel* runs() const { return m_runs; }
    RunFilterModel* filter() const { return m_filter; }
    const RunRow* selectedRun() const;             // null: none, or more than one
    std::vector<RunRow> selectedRuns() const;      // by id
    std::vector<std::int64_t> selectedIds() const; // ascending
    void choose(qint64 runId);
    void copySelection(QChar separator) const;
    // Opens the editor in the name of the chosen run.
    void renameSelected();
    // A key that does this while the table has the focus.
    void addKey(const QKeySequence& key, std::function<void()> what);
    void saveColumns() const;

private:
    void sizeColumns();
    QString settingsKey() const;

    Place m_place;
    RunTableModel* m_runs;
    RunFilterModel* m_filter;
};

} // namespace mr::ui
