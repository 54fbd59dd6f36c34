// Every run of the history as a table: one row per run, newest first.
//
// Numbers for sorting are in SortRole; unknown values sort last either way (RunFilterModel).

#pragma once

#include "models/run_snapshot.h"
#include "models/table_model.h"

namespace mr::ui {

class RunTableModel final : public TableModel
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
        Method,
        Tags,
        Note,      // its first line
        KeptUntil, // deleted runs only
        ColumnCount
    };
    enum Role {
        SortRole = Qt::UserRole, // number, or text for text columns; invalid: not known
        IdRole,
        StatusRole, // the store's word
        SearchRole, // all texts a filter looks at
        TagsRole    // QStringList
    };

    explicit RunTableModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    Qt::ItemFlags flags(const QModelIndex& index) const override;
    // Asks for a new name; the cell stays as it is until the history has it.
    bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;

    void setRenameable(bool on) { m_isRenameable = on; }
    // Keeps selection and position: rows are inserted, removed and changed one by one.
    void setRuns(const RunRowsPtr& runs);
    // Null: out of range.
    const RunRow* run(int row) const;
    int rowOf(std::int64_t id) const; // -1: none

signals:
    void renameRequested(qint64 runId, const QString& name);

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    struct Row {
        RunRow run;
        QString policy; // read from the plan once
        QString method; // and this from the settings
    };

    QVariant text(const Row& row, int column) const;
    QVariant sortValue(const Row& row, int column) const;

    QString searchText(const Row& row) const;

    std::vector<Row> m_rows;
    bool m_isRenameable = false;
};

} // namespace mr::ui
