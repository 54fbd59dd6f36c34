#include "charts/step_timeline.h"

#include "charts/chart_accessible.h"
#include "text/timeline_text.h"
#include "text/timeline_words.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace mr::ui {

namespace {

constexpr double kZoomFactor = 1.25;
constexpr double kPanShare = 0.1;
constexpr double kReach = 4.0; // logical pixels: how near a thin bar has to be pointed at
constexpr int kPreferredWidth = 700;

const StepTimeline& nothing()
{
    static const StepTimeline empty;
    return empty;
}

} // namespace

StepTimelineChart::StepTimelineChart(QWidget* parent)
    : QWidget(parent)
{
    ChartAccessible::install();
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName(tr("Timeline of a step"));
    setTimeline(nullptr, {});
}

void StepTimelineChart::setTimeline(TimelinePtr timeline, std::vector<std::string> groups)
{
    m_timeline = std::move(timeline);
    m_groups = std::move(groups);
    const StepTimeline& shown = m_timeline ? *m_timeline : nothing();
    m_rows = timelineRows(shown);
    m_rowOf = rowsOfSpans(m_rows, shown.spans.size());
    m_selected = -1;
    m_range = whole();
    layOut();
    updateGeometry();
    describe();
}

TimeRange StepTimelineChart::whole() const
{
    const std::int64_t end = m_timeline ? m_timeline->endNs : 0;
    return {0.0, std::max(1.0, static_cast<double>(end))};
}

void StepTimelineChart::layOut()
{
    m_geometry = TimelineGeometry::make(m_rows, width(), QFontMetricsF(font()));
    invalidate();
}

void StepTimelineChart::invalidate()
{
    m_static = {};
    update();
}

TimelinePicture StepTimelineChart::picture() const
{
    return {m_timeline ? *m_timeline : nothing(), m_groups, m_rows, m_rowOf, m_range};
}

void StepTimelineChart::setRange(TimeRange range)
{
    if (range == m_range)
        return;
    m_range = range;
    invalidate();
}

void StepTimelineChart::fit()
{
    setRange(whole());
}

void StepTimelineChart::zoomBy(double factor)
{
    double at = (m_range.from + m_range.to) / 2.0;
    if (m_selected >= 0) {
        const TimelineSpan& span = m_timeline->spans[static_cast<std::size_t>(m_selected)];
        const double middle = static_cast<double>(span.beginNs + span.endNs) / 2.0;
        if (middle >= m_range.from && middle <= m_range.to)
            at = middle;
    }
    setRange(zoomed(m_range, whole(), factor, at));
}

void StepTimelineChart::select(int span)
{
    m_selected = span;
    if (span >= 0) {
        const TimelineSpan& chosen = m_timeline->spans[static_cast<std::size_t>(span)];
        setRange(revealing(m_range, whole(), static_cast<double>(chosen.beginNs),
            static_cast<double>(chosen.endNs)));
    }
    update();
    describe();
    emit selectionChanged(span);
}

void StepTimelineChart::describe()
{
    setAccessibleDescription(m_selected >= 0 ? readout() : summary());
    emit readoutChanged(readout());
}

QString StepTimelineChart::readout() const
{
    if (!m_timeline)
        return {};
    return m_selected >= 0 ? TimelineText::sentence(*m_timeline, m_selected, m_groups) : summary();
}

QString StepTimelineChart::summary() const
{
    return m_timeline ? TimelineText::summary(*m_timeline) : tr("No step is shown.");
}

QString StepTimelineChart::toolTipFor(int span, int alsoHere) const
{
    return TimelineText::toolTip(*m_timeline, span, m_groups, alsoHere);
}

QSize StepTimelineChart::minimumSizeHint() const
{
    return {240, static_cast<int>(std::ceil(m_geometry.height))};
}

QSize StepTimelineChart::sizeHint() const
{
    return {kPreferredWidth, minimumSizeHint().height()};
}

void StepTimelineChart::paintEvent(QPaintEvent*)
{
    const TimelinePicture shown = picture();
    if (m_static.isNull()) {
        const qreal ratio = devicePixelRatioF();
        m_static = QPixmap(size() * ratio);
        m_static.setDevicePixelRatio(ratio);
        m_static.fill(themeColors(palette()).card);
        QPainter painter(&m_static);
        painter.setFont(font());
        TimelinePainter(painter, shown, m_geometry, palette()).paint();
    }
    QPainter painter(this);
    painter.drawPixmap(0, 0, m_static);
    const QColor edge =
        hasFocus() ? palette().color(QPalette::Highlight) : themeColors(palette()).border;
    painter.setPen(QPen(edge, 0));
    painter.drawRect(m_geometry.plot.adjusted(-0.5, 0.5, 0.5, -0.5));
    if (m_selected >= 0)
        TimelinePainter(painter, shown, m_geometry, palette()).paintSelected(m_selected);
}

void StepTimelineChart::resizeEvent(QResizeEvent*)
{
    layOut();
}

void StepTimelineChart::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        invalidate();
    if (event->type() == QEvent::FontChange) {
        layOut();
        updateGeometry();
    }
}

void StepTimelineChart::focusInEvent(QFocusEvent*)
{
    update();
}

void StepTimelineChart::focusOutEvent(QFocusEvent*)
{
    update();
}

int StepTimelineChart::spanUnder(const QPointF& position) const
{
    const int under = m_geometry.rowAt(position.y());
    if (!m_timeline || under < 0 || position.x() < m_geometry.plot.left() - kReach)
        return -1;
    const double reach = kReach / m_geometry.plot.width() * m_range.length();
    return spanAt(
        m_rows[static_cast<std::size_t>(under)], m_geometry.nsAt(position.x(), m_range), reach);
}

bool StepTimelineChart::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const int under = m_geometry.rowAt(help->pos().y());
    const int span = spanUnder(help->pos());
    if (span >= 0) {
        const int columns = static_cast<int>(m_geometry.plot.width() * devicePixelRatioF());
        int also = 0;
        for (const TimelineBar& bar :
            timelineBars(m_rows[static_cast<std::size_t>(under)], m_range, columns)) {
            if (static_cast<int>(bar.span) == span)
                also = static_cast<int>(bar.count) - 1;
        }
        QToolTip::showText(help->globalPos(), toolTipFor(span, also), this);
    } else if (under >= 0 && help->pos().x() < m_geometry.plot.left()) {
        QToolTip::showText(help->globalPos(),
            TimelineWords::laneExplanation(m_rows[static_cast<std::size_t>(under)].lane), this);
    } else {
        QToolTip::hideText();
    }
    return true;
}

void StepTimelineChart::selectBeside(int by)
{
    if (m_selected < 0)
        return select(nearestSpan(m_rows.front(), m_range.from));
    const std::size_t at = m_rowOf[static_cast<std::size_t>(m_selected)];
    select(neighbour(m_rows[at], m_selected, by));
}

// The task of the next row that is not empty, at the same time.
void StepTimelineChart::selectInLane(int by)
{
    if (m_selected < 0)
        return selectBeside(0);
    const TimelineSpan& span = m_timeline->spans[static_cast<std::size_t>(m_selected)];
    const double middle = static_cast<double>(span.beginNs + span.endNs) / 2.0;
    const auto count = static_cast<int>(m_rows.size());
    int at = static_cast<int>(m_rowOf[static_cast<std::size_t>(m_selected)]) + by;
    for (; at >= 0 && at < count; at += by) {
        const int found = nearestSpan(m_rows[static_cast<std::size_t>(at)], middle);
        if (found >= 0)
            return select(found);
    }
}

bool StepTimelineChart::selectionKey(int key, bool control)
{
    if (key == Qt::Key_Comma || (control && key == Qt::Key_Left))
        selectBeside(-1);
    else if (key == Qt::Key_Period || (control && key == Qt::Key_Right))
        selectBeside(1);
    else if (key == Qt::Key_Up)
        selectInLane(-1);
    else if (key == Qt::Key_Down)
        selectInLane(1);
    else if (key == Qt::Key_Escape && m_selected >= 0)
        select(-1);
    else if ((key == Qt::Key_Return || key == Qt::Key_Enter) && m_selected >= 0 &&
             m_timeline->spans[static_cast<std::size_t>(m_selected)].source >= 0)
        select(m_timeline->spans[static_cast<std::size_t>(m_selected)].source);
    else
        return false;
    return true;
}

bool StepTimelineChart::rangeKey(int key)
{
    const double stride = m_range.length() * kPanShare;
    if (key == Qt::Key_Left) {
        setRange(panned(m_range, whole(), -stride));
    } else if (key == Qt::Key_Right) {
        setRange(panned(m_range, whole(), stride));
    } else if (key == Qt::Key_Plus || key == Qt::Key_Equal) {
        zoomBy(1.0 / kZoomFactor);
    } else if (key == Qt::Key_Minus) {
        zoomBy(kZoomFactor);
    } else if (key == Qt::Key_Home || key == Qt::Key_0) {
        fit();
    } else if (key == Qt::Key_F && m_selected >= 0) {
        const TimelineSpan& span = m_timeline->spans[static_cast<std::size_t>(m_selected)];
        setRange(
            around(whole(), static_cast<double>(span.beginNs), static_cast<double>(span.endNs)));
    } else {
        return false;
    }
    return true;
}

void StepTimelineChart::keyPressEvent(QKeyEvent* event)
{
    const bool control = event->modifiers().testFlag(Qt::ControlModifier);
    if (event->key() == Qt::Key_PageUp || event->key() == Qt::Key_PageDown) {
        emit stepRequested(event->key() == Qt::Key_PageUp ? -1 : 1);
        return;
    }
    if (!m_timeline || m_timeline->spans.empty() ||
        (!selectionKey(event->key(), control) && !rangeKey(event->key())))
        QWidget::keyPressEvent(event);
}

void StepTimelineChart::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton)
        return;
    m_pressed = true;
    m_dragged = false;
    m_dragFrom = event->position();
    m_dragRange = m_range;
}

void StepTimelineChart::mouseMoveEvent(QMouseEvent* event)
{
    if (!m_pressed)
        return;
    const double by = event->position().x() - m_dragFrom.x();
    if (!m_dragged && std::abs(by) < QApplication::startDragDistance())
        return;
    m_dragged = true;
    setCursor(Qt::ClosedHandCursor);
    setRange(panned(m_dragRange, whole(), -by / m_geometry.plot.width() * m_dragRange.length()));
}

void StepTimelineChart::mouseReleaseEvent(QMouseEvent* event)
{
    if (!m_pressed || event->button() != Qt::LeftButton)
        return;
    m_pressed = false;
    unsetCursor();
    if (!m_dragged && m_timeline)
        select(spanUnder(event->position()));
}

void StepTimelineChart::mouseDoubleClickEvent(QMouseEvent*)
{
    fit();
}

void StepTimelineChart::wheelEvent(QWheelEvent* event)
{
    const bool zooms = event->modifiers().testFlag(Qt::ControlModifier) || hasFocus();
    const QPoint delta = event->angleDelta();
    if (!zooms || delta.isNull()) {
        event->ignore();
        return;
    }
    if (std::abs(delta.x()) > std::abs(delta.y())) {
        setRange(panned(m_range, whole(), -delta.x() / 120.0 * m_range.length() * kPanShare));
    } else {
        const double factor = std::pow(kZoomFactor, -delta.y() / 120.0);
        setRange(zoomed(m_range, whole(), factor, m_geometry.nsAt(event->position().x(), m_range)));
    }
    event->accept();
}

} // namespace mr::ui
