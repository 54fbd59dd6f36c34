#include "charts/stall_strip.h"

#include "charts/chart_accessible.h"
#include "charts/line_chart.h"
#include "math/series_math.h"
#include "text/cause_colors.h"
#include "text/format.h"
#include "text/stall_words.h"
#include "text/units.h"

#include <QEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

constexpr int kGridLines = 4;

std::array<std::int64_t, 1 + kStallCauses> partsOf(const StepRow& row)
{
    std::array<std::int64_t, 1 + kStallCauses> parts{};
    parts[0] = row.computeUs;
    std::copy(row.stallUs.begin(), row.stallUs.end(), parts.begin() + 1);
    return parts;
}

QString milliseconds(std::int64_t us)
{
    return Format::milliseconds(static_cast<double>(us) / 1000.0);
}

} // namespace

StallStrip::StallStrip(QWidget* parent)
    : QWidget(parent)
    , m_cursor(kNone)
    , m_dragFrom(kNone)
    , m_dragTo(kNone)
{
    ChartAccessible::install();
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(tr("Time of each step"));
    setMinimumHeight(fontMetrics().height() * 7);
}

QSize StallStrip::sizeHint() const
{
    return {600, fontMetrics().height() * 9};
}

void StallStrip::setSteps(StepSeries steps)
{
    m_steps = std::move(steps);
    invalidate();
    setAccessibleDescription(summary());
}

void StallStrip::setPlannedStepMs(double ms)
{
    if (ms != m_plannedMs) {
        m_plannedMs = ms;
        invalidate();
    }
}

void StallStrip::setRange(double lower, double upper)
{
    m_lower = lower;
    m_upper = upper;
    invalidate();
}

void StallStrip::setCursor(double step)
{
    m_cursor = step;
    update();
    emit readoutChanged(readout());
}

void StallStrip::invalidate()
{
    m_static = {};
    update();
}

QRectF StallStrip::plotArea() const
{
    const int left = LineChart::leftMargin(*this) + 1;
    const int bottom = fontMetrics().height() + 6;
    return QRectF(rect()).adjusted(left, 6, -LineChart::kRightMargin - 1, -bottom);
}

double StallStrip::pixelOf(double step) const
{
    const QRectF area = plotArea();
    return area.left() + (step - m_lower) / (m_upper - m_lower) * area.width();
}

double StallStrip::stepAt(double x) const
{
    const QRectF area = plotArea();
    const double part = std::clamp((x - area.left()) / std::max(area.width(), 1.0), 0.0, 1.0);
    return m_lower + part * (m_upper - m_lower);
}

// Zoomed out, the worst step of the pixel column: the readout names the step that is drawn.
const StepRow* StallStrip::rowAt(double step) const
{
    if (std::isnan(step) || m_bars.empty())
        return nullptr;
    const double perStep = m_bars.front().width;
    if (m_bars.front().count > 1 || perStep <= 1.0) {
        const double column = std::floor(
            (step - m_lower) / (m_upper - m_lower) * plotArea().width() * devicePixelRatioF());
        for (const StallBar& bar : m_bars) {
            if (bar.left >= column)
                return &m_steps[bar.index];
        }
        return &m_steps[m_bars.back().index];
    }
    const std::size_t index = m_steps.lowerBound(std::round(step));
    const bool there = index < m_steps.size() &&
                       m_steps[index].step == static_cast<std::int64_t>(std::llround(step));
    return there ? &m_steps[index] : nullptr;
}

QString StallStrip::readout() const
{
    const StepRow* row = rowAt(m_cursor);
    if (row == nullptr)
        return {};
    const int cause = dominantCause(*row);
    QString head = tr("step %1 · %2").arg(countText(row->step), milliseconds(row->wallUs));
    if (cause < 0)
        return head;
    const auto part = static_cast<std::size_t>(cause);
    return tr("%1 · %2 %3", "step and time, cause, its time")
        .arg(head, StallWords::name(1 + part), milliseconds(row->stallUs[part]));
}

QString StallStrip::summary() const
{
    if (m_steps.empty())
        return tr("No steps yet.");
    const LedgerTotals totals = ledgerTotals(m_steps, 0.0, std::numeric_limits<double>::max());
    const auto worst = std::max_element(totals.us.begin() + 1, totals.us.end());
    const auto tenths = shareOut(totals.us, 1000);
    const auto part = static_cast<std::size_t>(worst - totals.us.begin());
    return tr("%1 steps, %2 a step. Compute %3. The longest wait: %4, %5.")
        .arg(countText(totals.steps), milliseconds(totals.wallUs / totals.steps),
            tenthsText(tenths[0]), StallWords::name(part), tenthsText(tenths[part]));
}

QString StallStrip::toolTipFor(const StepRow& row)
{
    const auto parts = partsOf(row);
    const auto tenths = shareOut(parts, 1000);
    QString html = QStringLiteral("<b>%1</b><table cellspacing=0>")
                       .arg(tr("Step %1: %2")
                                .arg(countText(row.step), milliseconds(row.wallUs))
                                .toHtmlEscaped());
    for (std::size_t part = 0; part < parts.size(); ++part)
        html += QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td><td align=right>%2</td>"
                               "<td align=right>&nbsp;&nbsp;%3</td></tr>")
                    .arg(StallWords::name(part).toHtmlEscaped(), milliseconds(parts[part]),
                        tenthsText(tenths[part]));
    return html + QStringLiteral("</table>");
}

QByteArray StallStrip::csv() const
{
    QByteArray text("step,wall_us,compute_us");
    for (const std::string_view name : kStallCauseNames)
        text += "," + QByteArray(name.data(), static_cast<qsizetype>(name.size())) + "_us";
    text += '\n';
    for (std::size_t i = 0; i < m_steps.size(); ++i) {
        const StepRow& row = m_steps[i];
        text += QByteArray::number(static_cast<qlonglong>(row.step)) + ',' +
                QByteArray::number(static_cast<qlonglong>(row.wallUs)) + ',' +
                QByteArray::number(static_cast<qlonglong>(row.computeUs));
        for (const std::int64_t us : row.stallUs)
            text += ',' + QByteArray::number(static_cast<qlonglong>(us));
        text += '\n';
    }
    return text;
}

void StallStrip::paintStatic()
{
    const qreal dpr = devicePixelRatioF();
    m_static = QPixmap(size() * dpr);
    m_static.setDevicePixelRatio(dpr);
    m_static.fill(themeColors(palette()).card);
    const QRectF area = plotArea();
    m_bars = stallBars(m_steps, m_lower, m_upper, static_cast<int>(area.width() * dpr));
    m_scaleUs = stallScaleUs(m_bars);
    QPainter painter(&m_static);
    painter.setFont(font());
    paintAxis(painter, area);
    paintBars(painter, area);
}

void StallStrip::paintAxis(QPainter& painter, const QRectF& area)
{
    const ThemeColors& colors = themeColors(palette());
    for (int i = 0; i <= kGridLines; i += 2) {
        const double y = std::round(area.bottom() - area.height() * i / kGridLines) + 0.5;
        painter.setPen(QPen(colors.grid, 0));
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
        painter.setPen(colors.muted);
        const double us = m_scaleUs * i / kGridLines;
        const QRectF label(0, y - 10, area.left() - 6, 20);
        if (i > 0)
            painter.drawText(
                label, Qt::AlignRight | Qt::AlignVCenter, Format::milliseconds(us / 1000.0));
    }
    // Labels at round steps, no closer than their text needs.
    const double room = fontMetrics().horizontalAdvance(QStringLiteral("0 000 000"));
    const double every =
        std::max(1.0, niceStep((m_upper - m_lower) * room / std::max(area.width(), 1.0)));
    for (double step = std::ceil(m_lower / every) * every; step <= m_upper; step += every) {
        const double x = pixelOf(step);
        painter.setPen(QPen(colors.border, 0));
        painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 3));
        painter.setPen(colors.muted);
        painter.drawText(QRectF(x - 60, area.bottom() + 4, 120, fontMetrics().height() + 2),
            Qt::AlignHCenter | Qt::AlignTop, countText(std::llround(step)));
    }
}

void StallStrip::paintBars(QPainter& painter, const QRectF& area)
{
    const qreal dpr = devicePixelRatioF();
    const double perUs = area.height() / m_scaleUs;
    const double left = std::round(area.left() * dpr);
    painter.setClipRect(area);
    for (const StallBar& bar : m_bars) {
        // A gap of one device pixel between bars that are wide enough to have one.
        const double from = std::round(bar.left);
        const double to =
            std::max(from + 1.0, std::round(bar.left + bar.width) - (bar.width >= 4.0 ? 1.0 : 0.0));
        const double x = (left + from) / dpr;
        const double width = (to - from) / dpr;
        const double wall = std::min(static_cast<double>(bar.wallUs) * perUs, area.height());
        const double compute = std::min(static_cast<double>(bar.computeUs) * perUs, wall);
        painter.fillRect(
            QRectF(x, area.bottom() - compute, width, compute), partColor(palette(), 0));
        if (bar.cause >= 0)
            painter.fillRect(QRectF(x, area.bottom() - wall, width, wall - compute),
                partColor(palette(), 1 + static_cast<std::size_t>(bar.cause)));
        if (static_cast<double>(bar.wallUs) > m_scaleUs)
            painter.fillRect(
                QRectF(x, area.top(), width, 3), palette().color(QPalette::WindowText));
    }
    painter.setClipping(false);
    const double planned = area.bottom() - m_plannedMs * 1000.0 * perUs;
    if (m_plannedMs > 0.0 && planned > area.top()) {
        painter.setPen(QPen(palette().color(QPalette::WindowText), 0, Qt::DashLine));
        painter.drawLine(QPointF(area.left(), planned), QPointF(area.right(), planned));
    }
}

void StallStrip::paintOverlay(QPainter& painter)
{
    const ThemeColors& colors = themeColors(palette());
    const QRectF area = plotArea();
    painter.setPen(QPen(hasFocus() ? palette().color(QPalette::Highlight) : colors.border, 0));
    painter.drawLine(area.bottomLeft(), area.bottomRight());
    painter.drawLine(area.topLeft(), area.bottomLeft());
    if (!std::isnan(m_dragFrom)) {
        QColor inside = colors.accent;
        inside.setAlphaF(0.15F);
        painter.fillRect(
            QRectF(QPointF(m_dragFrom, area.top()), QPointF(m_dragTo, area.bottom())).normalized(),
            inside);
    }
    if (!std::isnan(m_cursor) && m_cursor >= m_lower && m_cursor <= m_upper) {
        painter.setPen(QPen(colors.muted, 0));
        const double x = pixelOf(m_cursor);
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    }
}

void StallStrip::paintEvent(QPaintEvent*)
{
    if (m_static.isNull() || m_static.size() != size() * devicePixelRatioF())
        paintStatic();
    QPainter painter(this);
    painter.drawPixmap(0, 0, m_static);
    paintOverlay(painter);
}

void StallStrip::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
        invalidate();
}

} // namespace mr::ui
