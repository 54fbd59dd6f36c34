#include "models/timeline_table_model.h"

#include "text/timeline_words.h"
#include "text/units.h"

#include <array>
#include <cmath>
#include <string_view>

namespace mr::ui {

namespace {

constexpr std::array<std::string_view, kTimelineLanes> kLaneColumns = {
    "compute", "in", "out", "host", "disk_in", "disk_out", "engine"};

double rateOf(const TimelineSpan& span)
{
    const std::int64_t ns = span.endNs - span.beginNs;
    if (span.bytes <= 0 || ns <= 0)
        return std::nan("");
    return static_cast<double>(span.bytes) / static_cast<double>(ns) * 1e9;
}

double valueOf(const TimelineSpan& span, int column)
{
    switch (column) {
    case TimelineTableModel::Micro:
        return span.micro >= 0 ? span.micro : std::nan("");
    case TimelineTableModel::Begin:
        return static_cast<double>(span.beginNs);
    case TimelineTableModel::Duration:
        return static_cast<double>(span.endNs - span.beginNs);
    case TimelineTableModel::Bytes:
        return span.bytes > 0 ? static_cast<double>(span.bytes) : std::nan("");
    case TimelineTableModel::Rate:
        return rateOf(span);
    default:
        return std::nan("");
    }
}

} // namespace

int TimelineTableModel::rows() const
{
    return m_timeline ? static_cast<int>(m_timeline->spans.size()) : 0;
}

bool TimelineTableModel::isNumber(int column) const
{
    return column > Layer;
}

const TimelineSpan& TimelineTableModel::spanAt(int row) const
{
    return m_timeline->spans[static_cast<std::size_t>(row)];
}

QString TimelineTableModel::text(const TimelineSpan& of, int column) const
{
    switch (column) {
    case Lane:
        return TimelineWords::lane(of.kind == TimelineKind::Wait ? TimelineLane::Compute : of.lane);
    case Task:
        return TimelineWords::title(of);
    case Layer:
        return TimelineWords::layerOf(of, m_groups);
    case Micro:
        return of.micro >= 0 ? countText(of.micro) : QString();
    case Begin:
    case Duration:
        return spanText(valueOf(of, column));
    case Bytes:
        return of.bytes > 0 ? memoryText(static_cast<double>(of.bytes)) : QString();
    case Rate:
        return std::isnan(rateOf(of)) ? QString() : linkText(rateOf(of));
    default:
        return {};
    }
}

QVariant TimelineTableModel::cell(int row, int column, int role) const
{
    const TimelineSpan& of = spanAt(row);
    if (role == Qt::DisplayRole)
        return text(of, column);
    if (role == ValueRole)
        return valueOf(of, column);
    return {};
}

QString TimelineTableModel::title(int column) const
{
    switch (column) {
    case Lane:
        return tr("Lane");
    case Task:
        return tr("Task");
    case Layer:
        return tr("Layer");
    case Micro:
        return tr("Micro-batch");
    case Begin:
        return tr("Begins at");
    case Duration:
        return tr("Takes");
    case Bytes:
        return tr("Moves");
    case Rate:
        return tr("Rate");
    default:
        return {};
    }
}

void TimelineTableModel::setTimeline(TimelinePtr timeline, std::vector<std::string> groups)
{
    beginResetModel();
    m_timeline = std::move(timeline);
    m_groups = std::move(groups);
    endResetModel();
}

QByteArray TimelineTableModel::csv() const
{
    QByteArray csvText("lane,kind,task,group,micro,begin_ns,end_ns,bytes,cause\n");
    const auto bytes = [](std::string_view text) {
        return QByteArray(text.data(), static_cast<qsizetype>(text.size()));
    };
    for (int row = 0; row < rowCount(); ++row) {
        const TimelineSpan& of = spanAt(row);
        const bool isWait = of.kind == TimelineKind::Wait;
        csvText += bytes(kLaneColumns[static_cast<std::size_t>(of.lane)]);
        csvText += isWait ? ",wait," : ",task,";
        csvText += QByteArray::fromStdString(of.task);
        for (const std::int64_t number :
            {std::int64_t{of.group}, std::int64_t{of.micro}, of.beginNs, of.endNs, of.bytes})
            csvText += ',' + QByteArray::number(static_cast<qlonglong>(number));
        csvText += ',';
        if (isWait)
            csvText += bytes(kStallCauseNames[static_cast<std::size_t>(of.cause)]);
        csvText += '\n';
    }
    return csvText;
}

} // namespace mr::ui
