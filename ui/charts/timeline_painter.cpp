#include "charts/timeline_painter.h"

#include "math/series_math.h"
#include "text/timeline_words.h"
#include "text/units.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <array>
#include <cmath>

namespace mr::ui {

namespace {

constexpr double kLaneGap = 7.0;
constexpr double kRowGap = 1.0;
constexpr double kPaintedRowRoom = 8.0; // above and below the text of a bar
constexpr double kRightMargin = 8.0;
constexpr double kTextRoom = 6.0;   // left and right of the text of a bar
constexpr double kLeastText = 22.0; // narrower bars have none
constexpr double kLeastHatch = 6.0; // narrower waits are plain red
constexpr double kTick = 4.0;
constexpr double kArrow = 4.0;       // half the width of an arrow's head
constexpr double kLeastArrow = 10.0; // narrower waits have none
constexpr std::size_t kFullRows = 2; // a lane with more has lower ones
constexpr double kNsPerMs = 1e6;

QColor mixed(const QColor& a, const QColor& b, double share)
{
    const auto part = [share](float x, float y) {
        return static_cast<float>(x * share + y * (1.0 - share));
    };
    return QColor::fromRgbF(
        part(a.redF(), b.redF()), part(a.greenF(), b.greenF()), part(a.blueF(), b.blueF()));
}

QColor textOn(const QColor& fill)
{
    return contrastRatio(fill, Qt::white) >= contrastRatio(fill, Qt::black) ? Qt::white : Qt::black;
}

double labelWidth(const std::vector<TimelineRow>& rows, const QFontMetricsF& metrics)
{
    double width = 0.0;
    for (const TimelineRow& row : rows)
        width = std::max(width, metrics.horizontalAdvance(TimelineWords::lane(row.lane)));
    return std::ceil(width) + 12.0;
}

} // namespace

TimelineGeometry TimelineGeometry::make(
    const std::vector<TimelineRow>& rows, double width, const QFontMetricsF& metrics)
{
    std::array<std::size_t, kTimelineLanes> rowsOf{};
    for (const TimelineRow& row : rows)
        ++rowsOf.at(static_cast<std::size_t>(row.lane));
    TimelineGeometry made;
    const double left = labelWidth(rows, metrics);
    const double top = std::ceil(metrics.height()) + kTick + 4.0;
    const double full = std::ceil(metrics.height()) + kPaintedRowRoom;
    const double low = std::ceil(metrics.height() * 0.6);
    double y = top;
    for (const TimelineRow& row : rows) {
        const std::size_t count = rowsOf.at(static_cast<std::size_t>(row.lane));
        y += row.firstOfLane ? kLaneGap : kRowGap;
        const double height = count > kFullRows ? low : full;
        made.rows.emplace_back(left, y, std::max(1.0, width - left - kRightMargin), height);
        y += height;
    }
    made.plot = QRectF(left, top, std::max(1.0, width - left - kRightMargin), y + kLaneGap - top);
    made.height = made.plot.bottom() + 1.0;
    return made;
}

double TimelineGeometry::xOf(double ns, TimeRange range) const
{
    return plot.left() + (ns - range.from) / range.length() * plot.width();
}

double TimelineGeometry::nsAt(double x, TimeRange range) const
{
    const double part = std::clamp((x - plot.left()) / plot.width(), 0.0, 1.0);
    return range.from + part * range.length();
}

int TimelineGeometry::rowAt(double y) const
{
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (y >= rows[i].top() && y < rows[i].bottom())
            return static_cast<int>(i);
    }
    return -1;
}

TimelinePainter::TimelinePainter(QPainter& painter, const TimelinePicture& picture,
    const TimelineGeometry& geometry, const QPalette& palette)
    : m_painter(painter)
    , m_picture(picture)
    , m_geometry(geometry)
    , m_palette(palette)
    , m_colors(themeColors(palette))
    , m_metrics(painter.font())
    , m_ratio(painter.device()->devicePixelRatioF())
{
}

double TimelinePainter::snapped(double value) const
{
    return std::round(value * m_ratio) / m_ratio;
}

void TimelinePainter::paint()
{
    paintRuler();
    paintLanes();
    m_painter.save();
    m_painter.setClipRect(m_geometry.plot);
    for (std::size_t row = 0; row < m_picture.rows.size(); ++row)
        paintRow(row);
    paintArrows();
    m_painter.restore();
}

void TimelinePainter::paintRuler()
{
    const QRectF& plot = m_geometry.plot;
    const double lengthMs = m_picture.range.length() / kNsPerMs;
    const double room = m_metrics.horizontalAdvance(QStringLiteral("0 000.000 ms"));
    const double atLeast = lengthMs * room / plot.width();
    // niceStep() does not go below 1.
    double unit = 1.0;
    while (atLeast / unit < 1.0 && unit > 1e-6)
        unit /= 10.0;
    const double every = niceStep(atLeast / unit) * unit;
    const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(every) - 1e-9)), 0, 6);
    const double fromMs = m_picture.range.from / kNsPerMs;
    const double first = std::ceil(fromMs / every - 1e-9);
    for (double i = first; i * every <= fromMs + lengthMs * (1.0 + 1e-9); ++i) {
        const double x = snapped(m_geometry.xOf(i * every * kNsPerMs, m_picture.range));
        m_painter.fillRect(
            QRectF(x, plot.top() - kTick, 1.0 / m_ratio, plot.height() + kTick), m_colors.grid);
        const QString text = numberText(i * every, digits) + QChar(0xa0) + QStringLiteral("ms");
        const double width = m_metrics.horizontalAdvance(text);
        // Labels stay inside: the first and the last one would stick out.
        const double left = std::clamp(
            x - width / 2.0, plot.left() - 4.0, std::max(plot.left(), plot.right() + 4.0 - width));
        m_painter.setPen(m_colors.muted);
        m_painter.drawText(QRectF(left, 0.0, width + 1.0, plot.top() - kTick),
            Qt::AlignLeft | Qt::AlignVCenter, text);
    }
}

void TimelinePainter::paintLanes()
{
    for (std::size_t i = 0; i < m_picture.rows.size(); ++i) {
        const QRectF& box = m_geometry.rows[i];
        m_painter.fillRect(box, mixed(m_colors.grid, m_colors.card, 0.55));
        if (!m_picture.rows[i].firstOfLane)
            continue;
        m_painter.setPen(m_colors.muted);
        const QRectF label(0.0, box.top(), m_geometry.plot.left() - 8.0,
            std::max(box.height(), m_metrics.height()));
        m_painter.drawText(
            label, Qt::AlignRight | Qt::AlignVCenter, TimelineWords::lane(m_picture.rows[i].lane));
    }
}

QRectF TimelinePainter::boxOf(std::size_t row, const TimelineBar& bar) const
{
    // A gap of one device pixel between bars that are wide enough to have one.
    const double gap = bar.width >= 4.0 ? 1.0 : 0.0;
    const double left = snapped(m_geometry.plot.left());
    const QRectF& box = m_geometry.rows[row];
    return {left + bar.left / m_ratio, box.top(), (bar.width - gap) / m_ratio, box.height()};
}

void TimelinePainter::paintRow(std::size_t row)
{
    std::array<QColor, kTimelineClasses> fills;
    std::array<QColor, kTimelineClasses> texts;
    for (std::size_t i = 0; i < kTimelineClasses; ++i) {
        fills[i] = TimelineWords::classColor(static_cast<TimelineClass>(i), m_colors);
        texts[i] = textOn(fills[i]);
    }
    const int columns = static_cast<int>(std::floor(m_geometry.plot.width() * m_ratio));
    for (const TimelineBar& bar : timelineBars(m_picture.rows[row], m_picture.range, columns)) {
        const TimelineSpan& span = m_picture.timeline.spans[bar.span];
        const auto kind = static_cast<std::size_t>(TimelineWords::classOf(span));
        const QRectF box = boxOf(row, bar);
        if (span.kind == TimelineKind::Wait) {
            paintWait(box, span);
        } else {
            m_painter.fillRect(box, fills[kind]);
            paintText(box, span, texts[kind]);
        }
    }
}

// Lighter than work and hatched, so that red is not all that says it.
void TimelinePainter::paintWait(const QRectF& box, const TimelineSpan& span)
{
    if (box.width() < kLeastHatch) {
        m_painter.fillRect(box, m_colors.error);
        return;
    }
    m_painter.fillRect(box, mixed(m_colors.error, m_colors.card, isDark(m_palette) ? 0.36 : 0.22));
    m_painter.fillRect(box, QBrush(mixed(m_colors.error, m_colors.card, 0.5), Qt::BDiagPattern));
    const double line = std::max(1.0, std::round(2.0 * m_ratio)) / m_ratio;
    m_painter.fillRect(QRectF(box.left(), box.top(), box.width(), line), m_colors.error);
    m_painter.fillRect(QRectF(box.left(), box.bottom() - line, box.width(), line), m_colors.error);
    paintText(box, span, m_palette.color(QPalette::WindowText));
}

void TimelinePainter::paintText(const QRectF& box, const TimelineSpan& span, const QColor& color)
{
    if (box.width() < kLeastText || box.height() < m_metrics.height())
        return;
    for (const QString& text : TimelineWords::barTexts(span, m_picture.groups)) {
        if (m_metrics.horizontalAdvance(text) + kTextRoom > box.width())
            continue;
        m_painter.setPen(color);
        m_painter.drawText(box, Qt::AlignCenter, text);
        return;
    }
}

void TimelinePainter::paintArrows()
{
    for (const TimelineRow& row : m_picture.rows) {
        if (row.lane != TimelineLane::Compute)
            break; // Compute is the first lane
        const double least = kLeastArrow / m_geometry.plot.width() * m_picture.range.length();
        for (std::size_t i = 0; i < row.spans.size(); ++i) {
            const bool seen =
                row.ends[i] >= m_picture.range.from && row.begins[i] <= m_picture.range.to;
            if (!seen || row.ends[i] - row.begins[i] < least)
                continue;
            const TimelineSpan& span = m_picture.timeline.spans[row.spans[i]];
            if (span.kind == TimelineKind::Wait)
                paintArrow(span);
        }
    }
}

// From the end of the wait down to the end of the task it waited for: both are the same moment, or
// nearly.
void TimelinePainter::paintArrow(const TimelineSpan& wait)
{
    if (wait.source < 0)
        return;
    const auto source = static_cast<std::size_t>(wait.source);
    const TimelineSpan& to = m_picture.timeline.spans[source];
    const std::size_t waitRow =
        m_picture.rowOf[static_cast<std::size_t>(&wait - m_picture.timeline.spans.data())];
    const double fromX = snapped(m_geometry.xOf(static_cast<double>(wait.endNs), m_picture.range));
    const double toX = snapped(m_geometry.xOf(static_cast<double>(to.endNs), m_picture.range));
    const double fromY = m_geometry.rows[waitRow].bottom();
    const double toY = m_geometry.rows[m_picture.rowOf[source]].top();
    const double line = 1.0 / m_ratio;
    const QColor& color = m_colors.error;
    const double turn = fromY + kLaneGap / 2.0;
    m_painter.fillRect(QRectF(fromX, fromY, line, turn - fromY), color);
    m_painter.fillRect(
        QRectF(std::min(fromX, toX), snapped(turn), std::abs(toX - fromX) + line, line), color);
    m_painter.fillRect(QRectF(toX, turn, line, std::max(0.0, toY - turn - kArrow)), color);
    QPainterPath head;
    head.moveTo(toX + line / 2.0, toY);
    head.lineTo(toX + line / 2.0 - kArrow, toY - kArrow * 1.4);
    head.lineTo(toX + line / 2.0 + kArrow, toY - kArrow * 1.4);
    head.closeSubpath();
    m_painter.setRenderHint(QPainter::Antialiasing);
    m_painter.fillPath(head, color);
    m_painter.setRenderHint(QPainter::Antialiasing, false);
}

// Four filled strips: a pen of two pixels is slow and blurs at odd scales.
void TimelinePainter::frame(int index, const QColor& color)
{
    const TimelineSpan& span = m_picture.timeline.spans[static_cast<std::size_t>(index)];
    const QRectF& row = m_geometry.rows[m_picture.rowOf[static_cast<std::size_t>(index)]];
    const double left = snapped(m_geometry.xOf(static_cast<double>(span.beginNs), m_picture.range));
    const double right = std::max(
        left + 3.0, snapped(m_geometry.xOf(static_cast<double>(span.endNs), m_picture.range)));
    const double line = std::max(1.0, std::round(2.0 * m_ratio)) / m_ratio;
    const QRectF box =
        QRectF(left, row.top(), right - left, row.height()).adjusted(-line, -line, line, line);
    m_painter.fillRect(QRectF(box.left(), box.top(), box.width(), line), color);
    m_painter.fillRect(QRectF(box.left(), box.bottom() - line, box.width(), line), color);
    m_painter.fillRect(QRectF(box.left(), box.top(), line, box.height()), color);
    m_painter.fillRect(QRectF(box.right() - line, box.top(), line, box.height()), color);
}

void TimelinePainter::paintSelected(int span)
{
    m_painter.save();
    m_painter.setClipRect(m_geometry.plot.adjusted(-2.0, 0.0, 2.0, 0.0));
    const TimelineSpan& selected = m_picture.timeline.spans[static_cast<std::size_t>(span)];
    if (selected.source >= 0) {
        paintArrow(selected);
        frame(selected.source, m_colors.error);
    }
    frame(span, m_palette.color(QPalette::WindowText));
    m_painter.restore();
}

} // namespace mr::ui
