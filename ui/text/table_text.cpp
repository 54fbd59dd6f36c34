#include "text/table_text.h"

#include <QAbstractItemModel>
#include <QStringList>

namespace mr::ui {

namespace {

QString cell(QString text, QChar separator)
{
    if (separator == QLatin1Char('\t'))
        return text.replace(QLatin1Char('\t'), QLatin1Char(' '))
            .replace(QLatin1Char('\n'), QLatin1Char(' '));
    if (!text.contains(separator) && !text.contains(QLatin1Char('"')) &&
        !text.contains(QLatin1Char('\n')))
        return text;
    text.replace(QLatin1Char('"'), QStringLiteral("\"\""));
    return QLatin1Char('"') + text + QLatin1Char('"');
}

} // namespace

QString tableText(const QAbstractItemModel& model, const QModelIndexList& rows, QChar separator)
{
    QStringList lines;
    QStringList line;
    for (int column = 0; column < model.columnCount(); ++column)
        line << cell(model.headerData(column, Qt::Horizontal).toString(), separator);
    lines << line.join(separator);
    for (const QModelIndex& row : rows) {
        line.clear();
        for (int column = 0; column < model.columnCount(); ++column)
            line << cell(row.siblingAtColumn(column).data().toString(), separator);
        lines << line.join(separator);
    }
    return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

} // namespace mr::ui
