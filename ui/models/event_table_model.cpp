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

} // namespace

int EventTableModel::rows() const
{
    return static_cast<int>(m_rows.size());
}

bool EventTableModel::isNumber(int column) const
{
    return column == Step || column == Time;
}

QVariant EventTableModel::cell(int row, int column, int role) const
{
    const EventRow& event = m_rows[static_cast<std::size_t>(row)];
    if (role == Qt::DecorationRole && column == Level)
        return levelIcon(event.level);
    if (role == Qt::ToolTipRole && column == Text)
        return QString::fromStdString(event.text);
    if (role != Qt::DisplayRole && role != ValueRole)
        return {};
    const bool text = role == Qt::DisplayRole;
    switch (static_cast<Column>(column)) {
    case Level:
        if (!text)
            return static_cast<int>(event.level);
        return event.level == EventLevel::Info      ? tr("Info")
               : event.level == EventLevel::Warning ? tr("Warning")
                                                    : tr("Error");
    case Step:
        return text ? QVariant(countText(event.step)) : QVariant(qlonglong{event.step});
    case Time:
        return text ? QVariant(durationText(static_cast<double>(event.timeMs) / 1000.0))
                    : QVariant(qlonglong{event.timeMs});
    case Text:
        return QString::fromStdString(event.text);
    case ColumnCount:
        break;
    }
    return {};
}

QString EventTableModel::title(int column) const
{
    switch (column) {
    case Level:
        return tr("Kind");
    case Step:
        return tr("Step");
    case Time:
        return tr("After");
    case Text:
        return tr("Event");
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
