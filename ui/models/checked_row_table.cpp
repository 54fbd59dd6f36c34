#include "models/checked_row_table.h"

#include "text/row_check_words.h"
#include "text/units.h"

#include <utility>

namespace mr::ui {

void CheckedRowTable::setRows(std::vector<CheckedRow> rows)
{
    beginResetModel();
    m_rows = std::move(rows);
    m_texts.clear();
    endResetModel();
}

void CheckedRowTable::setTexts(const std::vector<RowText>& texts)
{
    for (const RowText& one : texts)
        m_texts[one.row] = QString::fromStdString(one.text);
    if (!m_rows.empty())
        emit dataChanged(index(0, Text), index(rows() - 1, Text));
}

QVariant CheckedRowTable::cell(int row, int column, int role) const
{
    const CheckedRow& one = m_rows[static_cast<std::size_t>(row)];
    if (role == ValueRole)
        return column == Line ? QVariant::fromValue<qint64>(one.line)
                              : QVariant::fromValue<qint64>(column == Other ? one.other : one.row);
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole)
        return {};
    switch (column) {
    case Row:
        return countText(one.row);
    case Line:
        return countText(one.line);
    case Why:
        return RowCheckWords::why(one.why);
    case Other:
        return one.other > 0 ? countText(one.other) : QString();
    default:
        break;
    }
    const auto text = m_texts.find(one.row);
    return text == m_texts.end() ? QString() : text->second;
}

QString CheckedRowTable::title(int column) const
{
    switch (column) {
    case Row:
        return tr("Row");
    case Line:
        return tr("Line");
    case Why:
        return tr("Finding");
    case Other:
        return tr("As row");
    default:
        return tr("Text");
    }
}

bool CheckedRowTable::isNumber(int column) const
{
    return column == Row || column == Line || column == Other;
}

} // namespace mr::ui
