// CsvTableModel: comma-separated text of this program as a table.
//
// Reads what charts export (RFC 4180: quoted where it must be, "." as the decimal point); the first
// line has the titles, and a row that is shorter ends in empty cells.
//
// Threads  GUI.

#pragma once

#include "models/table_model.h"

#include <QByteArray>
#include <QStringList>

#include <vector>

namespace mr::ui {

class CsvTableModel final : public TableModel
{
    Q_OBJECT

public:
    explicit CsvTableModel(const QByteArray& csv, QObject* parent = nullptr);

protected:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

private:
    CsvTableModel(std::vector<QStringList> lines, QObject* parent);
    QString text(int row, int column) const;

    QStringList m_titles;
    std::vector<QStringList> m_rows;
};

} // namespace mr::ui
