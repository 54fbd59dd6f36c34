// Events of a run, oldest first: checkpoints, evaluations, warnings.

#pragma once

#include "models/table_model.h"

#include <millrace/run_reader.h>

#include <span>
#include <vector>

namespace mr::ui {

class EventTableModel final : public TableModel
{
    Q_OBJECT

public:
    enum Column { Level, Step, Time, Text, ColumnCount };

    explicit EventTableModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    void clear();
    // Rows that are shown already (by id) are dropped.
    void append(std::span<const EventRow> rows);

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    std::vector<EventRow> m_rows;
};

} // namespace mr::ui
