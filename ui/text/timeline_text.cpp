#include "text/timeline_text.h"

#include "text/stall_words.h"
#include "text/timeline_words.h"
#include "text/units.h"

#include <QStringList>

#include <algorithm>
#include <array>

namespace mr::ui {

namespace {

QString row(const QString& name, const QString& value)
{
    return QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td><td align=right>%2</td></tr>")
        .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
}

double durationNs(const TimelineSpan& span)
{
    return static_cast<double>(span.endNs - span.beginNs);
}

// Empty where nothing was copied, or in no time.
QString rateText(const TimelineSpan& span)
{
    if (span.bytes <= 0 || span.endNs <= span.beginNs)
        return {};
    return linkText(static_cast<double>(span.bytes) / durationNs(span) * 1e9);
}

// Is the span a wait that a task explains?
bool namesTask(const TimelineSpan& span)
{
    return span.kind == TimelineKind::Wait && !span.task.empty() && span.cause != StallCause::Other;
}

} // namespace

QString TimelineText::summary(const StepTimeline& timeline)
{
    std::array<std::int64_t, kStallCauses> waitNs{};
    int tasks = 0;
    for (const TimelineSpan& span : timeline.spans) {
        if (span.kind == TimelineKind::Wait)
            waitNs[static_cast<std::size_t>(span.cause)] += span.endNs - span.beginNs;
        else
            ++tasks;
    }
    QString text =
        tr("Step %1 · %2 · %n task(s)", "", tasks)
            .arg(countText(timeline.step), spanText(static_cast<double>(timeline.endNs)));
    const auto worst = std::max_element(waitNs.begin(), waitNs.end());
    if (*worst <= 0)
        return text;
    return tr("%1 · the longest wait: %2, %3", "the step, cause, time")
        .arg(text, StallWords::name(1 + static_cast<std::size_t>(worst - waitNs.begin())),
            spanText(static_cast<double>(*worst)));
}

QString TimelineText::sentence(
    const StepTimeline& timeline, int index, const std::vector<std::string>& groups)
{
    const TimelineSpan& span = timeline.spans[static_cast<std::size_t>(index)];
    QStringList parts{TimelineWords::title(span)};
    if (namesTask(span))
        parts << tr("until done: %1").arg(TimelineWords::task(span.task));
    if (const QString where = TimelineWords::layerOf(span, groups); !where.isEmpty())
        parts << where;
    if (span.micro >= 0)
        parts << tr("micro-batch %1").arg(span.micro);
    parts << tr("at %1").arg(spanText(static_cast<double>(span.beginNs)));
    parts << tr("takes %1").arg(spanText(durationNs(span)));
    if (span.bytes > 0)
        parts << memoryText(static_cast<double>(span.bytes));
    if (const QString rate = rateText(span); !rate.isEmpty())
        parts << rate;
    return parts.join(QStringLiteral(" · "));
}

QString TimelineText::toolTip(
    const StepTimeline& timeline, int index, const std::vector<std::string>& groups, int alsoHere)
{
    const TimelineSpan& span = timeline.spans[static_cast<std::size_t>(index)];
    const bool isWait = span.kind == TimelineKind::Wait;
    QString html = QStringLiteral("<b>%1</b><table cellspacing=0>")
                       .arg(TimelineWords::title(span).toHtmlEscaped());
    if (namesTask(span))
        html += row(tr("For"), TimelineWords::task(span.task));
    if (const QString where = TimelineWords::layerOf(span, groups); !where.isEmpty())
        html += row(tr("Layer"), where);
    if (span.micro >= 0)
        html += row(tr("Micro-batch"), countText(span.micro));
    html += row(isWait ? tr("Waits for lane") : tr("Lane"), TimelineWords::lane(span.lane));
    html += row(tr("Begins at"), spanText(static_cast<double>(span.beginNs)));
    html += row(tr("Takes"), spanText(durationNs(span)));
    if (span.bytes > 0)
        html += row(tr("Moves"), memoryText(static_cast<double>(span.bytes)));
    if (const QString rate = rateText(span); !rate.isEmpty())
        html += row(tr("Rate"), rate);
    html += QStringLiteral("</table>");
    if (alsoHere > 0)
        html += tr("and %n more here: zoom in", "", alsoHere).toHtmlEscaped();
    return html;
}

} // namespace mr::ui
