// Mouse and keys of a LineChart.

#include "charts/line_chart_parts.h"

#include <QKeyEvent>

#include <algorithm>
#include <cmath>

namespace mr::ui {

namespace {

constexpr double kFewestPoints = 8.0; // shown when zoomed in as far as it goes
constexpr double kWheelZoom = 1.25;

} // namespace

void LineChart::Plot::wheelEvent(QWheelEvent* event)
{
    if (!event->modifiers().testFlag(Qt::ControlModifier)) {
        event->ignore();
        return;
    }
    const bool in = event->angleDelta().y() > 0;
    m_owner.zoom(in ? 1.0 / kWheelZoom : kWheelZoom,
        m_owner.positionAt(static_cast<int>(event->position().x())));
    event->accept();
}

void LineChart::Plot::leaveEvent(QEvent* event)
{
    QCustomPlot::leaveEvent(event);
    emit m_owner.cursorMoved(kNowhere);
}

void LineChart::wireMouse()
{
    m_plot->setMouseTracking(true);
    m_plot->setSelectionRectMode(QCP::srmCustom);
    connect(m_plot, &QCustomPlot::mouseMove, this,
        [this](QMouseEvent* event) { emit cursorMoved(std::round(positionAt(event->pos().x()))); });
    connect(m_plot, &QCustomPlot::mouseDoubleClick, this, [this] { emit allPicked(); });
    connect(m_plot->selectionRect(), &QCPSelectionRect::accepted, this, [this](const QRect& box) {
        const double lower = positionAt(box.left());
        const double upper = positionAt(box.right());
        if (box.width() > 4 && upper - lower > m_axis.grid)
            emit rangePicked(lower, std::max(upper, lower + kFewestPoints * m_axis.grid));
    });
}

double LineChart::positionAt(int pixel) const
{
    return std::clamp(m_plot->xAxis->pixelToCoord(pixel), m_lower, m_upper);
}

void LineChart::zoom(double factor, double around)
{
    const double width = std::max((m_upper - m_lower) * factor, kFewestPoints * m_axis.grid);
    const double part = (around - m_lower) / (m_upper - m_lower);
    emit rangePicked(around - part * width, around + (1.0 - part) * width);
}

void LineChart::moveCursor(int points)
{
    const double from = std::isnan(m_cursor) ? m_upper : m_cursor;
    const double to =
        std::clamp(from + points * m_axis.grid, std::ceil(m_lower), std::floor(m_upper));
    emit cursorMoved(to);
}

void LineChart::keyPressEvent(QKeyEvent* event)
{
    const bool far = event->modifiers().testFlag(Qt::ShiftModifier);
    const double middle = std::isnan(m_cursor) ? (m_lower + m_upper) / 2.0 : m_cursor;
    switch (event->key()) {
    case Qt::Key_Left:
        return moveCursor(far ? -10 : -1);
    case Qt::Key_Right:
        return moveCursor(far ? 10 : 1);
    case Qt::Key_Home:
        return emit cursorMoved(std::ceil(m_lower));
    case Qt::Key_End:
        return emit cursorMoved(std::floor(m_upper));
    case Qt::Key_Escape:
        return emit cursorMoved(kNowhere);
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        return zoom(1.0 / kWheelZoom, middle);
    case Qt::Key_Minus:
        return zoom(kWheelZoom, middle);
    case Qt::Key_0:
        return emit allPicked();
    case Qt::Key_L:
        return setLogScale(!m_log);
    default:
        QWidget::keyPressEvent(event);
    }
}

} // namespace mr::ui
