// Every run of the history as a table: one row per run, newest first.
//
// Numbers for sorting are in SortRole; what is not known sorts last either way (RunFilterModel).

#pragma once

#include "models/run_snapshot.h"

#include <QAbstractTableModel>

namespace mr::ui {

class RunTableModel final : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column {
        Status,
        Name,
        Date,
        BestEval,
        LastLoss,
        Steps,
        Tokens,
        ActiveTime,
        StallShare,
        Speed,
        PeakDevice,
        Model,
        Dataset,
        Policy,
        ColumnCount
    };
    enum Role {
        SortRole = Qt::UserRole, // number, or text for text columns; invalid: not known
        IdRole,
        StatusRole, // the store's word
        SearchRole  // all texts a filter looks at
    };

    using QAbstractTableModel::QAbstractTableModel;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    // Keeps selection and position: rows are inserted, removed and changed one by one.
    void setRuns(const RunRowsPtr& runs);
    // Null: out of range.
    const RunRow* run(int row) const;
    int rowOf(std::int64_t id) const; // -1: none

private:
    struct Row {
        RunRow run;
        QString policy; // read from the plan once
    };

    QVariant text(const Row& row, int column) const;
    QVariant sortValue(const Row& row, int column) const;

    std::vector<Row> m_rows;
};

} // namespace mr::ui
