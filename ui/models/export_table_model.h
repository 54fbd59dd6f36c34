// Exports of a run, newest first: the form, its place, and what its check said.

#pragma once

#include "models/table_model.h"

#include <millrace/run_reader.h>

#include <vector>

namespace mr::ui {

class ExportTableModel final : public TableModel
{
    Q_OBJECT

public:
    enum Column { Form, Check, Type, Size, Time, Path, ColumnCount };

    explicit ExportTableModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    // Rows that are shown already change nothing, so that a selection stays.
    void setExports(const std::vector<ExportRow>& exports);

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    static QString formName(const std::string& form);
    static QString text(const ExportRow& row, int column);
    static QVariant value(const ExportRow& row, int column);
    static QString verdict(const ExportRow& row);

    std::vector<ExportRow> m_rows;
};

} // namespace mr::ui
