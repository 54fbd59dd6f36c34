// Rows that a check of a dataset found, as a table: where they are, why, and their text.
//
// Threads  GUI.

#pragma once

#include "models/table_model.h"

#include <millrace/data_checks.h>

#include <unordered_map>
#include <vector>

namespace mr::ui {

class CheckedRowTable final : public TableModel
{
    Q_OBJECT

public:
    enum Column { Row, Line, Why, Other, Text, ColumnCount };

    explicit CheckedRowTable(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    void setRows(std::vector<CheckedRow> rows);
    // Texts of some of the rows, which come later.
    void setTexts(const std::vector<RowText>& texts);

private:
    int rows() const override { return static_cast<int>(m_rows.size()); }
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    std::vector<CheckedRow> m_rows;
    std::unordered_map<std::int64_t, QString> m_texts; // by row
};

} // namespace mr::ui
