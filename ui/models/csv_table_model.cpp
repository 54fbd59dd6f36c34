#include "models/csv_table_model.h"

#include <QLocale>

#include <utility>

namespace mr::ui {

namespace {

// Splits the text into lines of cells.
class CsvReader
{
public:
    std::vector<QStringList> read(const QString& text)
    {
        for (const QChar c : text)
            take(c);
        if (!m_cell.isEmpty() || !m_line.isEmpty())
            endLine();
        return std::move(m_lines);
    }

private:
    void take(QChar c)
    {
        if (c == u'"') {
            if (!m_quoted && m_wasQuoted) // two of them stand for one
                m_cell += c;
            m_wasQuoted = m_quoted;
            m_quoted = !m_quoted;
            return;
        }
        m_wasQuoted = false;
        if (m_quoted)
            m_cell += c;
        else if (c == u',')
            endCell();
        else if (c == u'\n')
            endLine();
        else if (c != u'\r')
            m_cell += c;
    }

    void endCell()
    {
        m_line << m_cell;
        m_cell.clear();
    }

    void endLine()
    {
        endCell();
        m_lines.push_back(std::exchange(m_line, {}));
    }

    std::vector<QStringList> m_lines;
    QStringList m_line;
    QString m_cell;
    bool m_quoted = false;
    bool m_wasQuoted = false; // the last character ended a quotation
};

} // namespace

CsvTableModel::CsvTableModel(const QByteArray& csv, QObject* parent)
    : CsvTableModel(CsvReader().read(QString::fromUtf8(csv)), parent)
{
}

CsvTableModel::CsvTableModel(std::vector<QStringList> lines, QObject* parent)
    : TableModel(lines.empty() ? 0 : static_cast<int>(lines.front().size()), parent)
{
    if (lines.empty())
        return;
    m_titles = lines.front();
    m_rows.assign(lines.begin() + 1, lines.end());
}

int CsvTableModel::rows() const
{
    return static_cast<int>(m_rows.size());
}

QString CsvTableModel::text(int row, int column) const
{
    return m_rows[static_cast<std::size_t>(row)].value(column);
}

QVariant CsvTableModel::cell(int row, int column, int role) const
{
    if (role != Qt::DisplayRole && role != ValueRole)
        return {};
    const QString shown = text(row, column);
    bool isValue = false;
    const double value = QLocale::c().toDouble(shown, &isValue);
    return role == ValueRole && isValue ? QVariant(value) : QVariant(shown);
}

QString CsvTableModel::title(int column) const
{
    return m_titles.value(column);
}

bool CsvTableModel::isNumber(int column) const
{
    bool isValue = false;
    if (!m_rows.empty())
        QLocale::c().toDouble(text(0, column), &isValue);
    return isValue;
}

} // namespace mr::ui
