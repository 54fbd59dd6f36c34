// What happened in a run, oldest first: checkpoints, evaluations, warnings.

#pragma once

#include <millrace/run_reader.h>

#include <QAbstractTableModel>

#include <span>
#include <vector>

namespace mr::ui {

class EventTableModel final : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { Level, Step, Time, Text, ColumnCount };
    enum Role { ValueRole = Qt::UserRole };

    using QAbstractTableModel::QAbstractTableModel;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    void clear();
    // Rows that are shown already (by id) are dropped.
    void append(std::span<const EventRow> rows);

private:
    std::vector<EventRow> m_rows;
};

} // namespace mr::ui
