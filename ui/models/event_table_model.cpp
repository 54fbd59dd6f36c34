#include "models/event_table_model.h"

#include "text/svg_icon.h"
#include "text/theme_colors.h"
#include "text/units.h"

#include <QGuiApplication>
#include <QPixmap>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kMarkExtent = 14;

QVariant levelIcon(EventLevel level)
{
    const ThemeColors& colors = themeColors(QGuiApplication::palette());
    const qreal dpr = qGuiApp->devicePixelRatio();
    switch (level) {
    case EventLevel::Warning:
        return svgPixmap(QStringLiteral("warning"), colors.warning, kMarkExtent, dpr);
    case EventLevel::Error:
        return svgPixmap(QStringLiteral("error"), colors.error, kMarkExtent, dpr);
    case EventLevel::Info:
        break;
    }
    return svgPixmap(QStringLiteral("info"), colors.muted, kMarkExtent, dpr);
}

Qt::Alignment alignment(int column)
{
    const bool number = column == EventTableModel::Step || column == EventTableModel::Time;
    return (number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter;
}

} // namespace

int EventTableModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int EventTableModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant EventTableModel::data(const QModelIndex& index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid))
        return {};
    const EventRow& row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == Qt::DecorationRole && index.column() == Level)
        return levelIcon(row.level);
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(alignment(index.column()));
    if (role == Qt::ToolTipRole && index.column() == Text)
        return QString::fromStdString(row.text);
    if (role != Qt::DisplayRole && role != ValueRole)
        return {};
    const bool text = role == Qt::DisplayRole;
    switch (static_cast<Column>(index.column())) {
    case Level:
        if (!text)
            return static_cast<int>(row.level);
        return row.level == EventLevel::Info      ? tr("Info")
               : row.level == EventLevel::Warning ? tr("Warning")
                                                  : tr("Error");
    case Step:
        return text ? QVariant(countText(row.step)) : QVariant(qlonglong{row.step});
    case Time:
        return text ? QVariant(durationText(static_cast<double>(row.timeMs) / 1000.0))
                    : QVariant(qlonglong{row.timeMs});
    case Text:
        return QString::fromStdString(row.text);
    case ColumnCount:
        break;
    }
    return {};
}

QVariant EventTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(alignment(section));
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Level:
        return tr("Kind");
    case Step:
        return tr("Step");
    case Time:
        return tr("After");
    case Text:
        return tr("What happened");
    default:
        return {};
    }
}

void EventTableModel::clear()
{
    beginResetModel();
    m_rows.clear();
    endResetModel();
}

void EventTableModel::append(std::span<const EventRow> rows)
{
    const std::int64_t last = m_rows.empty() ? -1 : m_rows.back().id;
    const auto fresh =
        std::find_if(rows.begin(), rows.end(), [last](const EventRow& r) { return r.id > last; });
    if (fresh == rows.end())
        return;
    const int count = static_cast<int>(rows.end() - fresh);
    beginInsertRows({}, rowCount(), rowCount() + count - 1);
    m_rows.insert(m_rows.end(), fresh, rows.end());
    endInsertRows();
}

} // namespace mr::ui
