// Keys and mouse of a StallStrip.

#include "charts/stall_strip.h"
#include "text/stall_words.h"
#include "text/units.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QToolTip>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

constexpr double kStripZoom = 1.25;
constexpr double kFewestSteps = 8.0;

} // namespace

bool StallStrip::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const StepRow* row = rowAt(stepAt(help->pos().x()));
    if (row != nullptr && plotArea().contains(help->pos()))
        QToolTip::showText(help->globalPos(), toolTipFor(*row), this);
    else
        QToolTip::hideText();
    return true;
}

void StallStrip::zoom(double factor, double around)
{
    const double width = std::max((m_upper - m_lower) * factor, kFewestSteps);
    const double part = (around - m_lower) / (m_upper - m_lower);
    emit rangePicked(around - part * width, around + (1.0 - part) * width);
}

void StallStrip::keyPressEvent(QKeyEvent* event)
{
    const double from = std::isnan(m_cursor) ? std::floor(m_upper) : m_cursor;
    const double stride = event->modifiers().testFlag(Qt::ShiftModifier) ? 10.0 : 1.0;
    const auto moved = [this](double step) {
        emit cursorMoved(std::clamp(step, std::ceil(m_lower), std::floor(m_upper)));
        if (const StepRow* row = rowAt(m_cursor)) {
            const int word = 1 + dominantCause(*row);
            setAccessibleDescription(readout() + QLatin1Char(' ') +
                                     StallWords::explanation(static_cast<std::size_t>(word)));
        }
    };
    switch (event->key()) {
    case Qt::Key_Left:
        return moved(from - stride);
    case Qt::Key_Right:
        return moved(from + stride);
    case Qt::Key_Home:
        return moved(m_lower);
    case Qt::Key_End:
        return moved(m_upper);
    case Qt::Key_Escape:
        return emit cursorMoved(kNone);
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        return zoom(1.0 / kStripZoom, std::isnan(m_cursor) ? (m_lower + m_upper) / 2 : m_cursor);
    case Qt::Key_Minus:
        return zoom(kStripZoom, std::isnan(m_cursor) ? (m_lower + m_upper) / 2 : m_cursor);
    case Qt::Key_0:
        return emit allPicked();
    default:
        QWidget::keyPressEvent(event);
    }
}

void StallStrip::leaveEvent(QEvent* event)
{
    QWidget::leaveEvent(event);
    emit cursorMoved(kNone);
}

void StallStrip::mouseMoveEvent(QMouseEvent* event)
{
    if (!std::isnan(m_dragFrom)) {
        m_dragTo = event->position().x();
        update();
    }
    emit cursorMoved(std::round(stepAt(event->position().x())));
}

void StallStrip::mousePressEvent(QMouseEvent* event)
{
    if (event->button() == Qt::LeftButton)
        m_dragFrom = m_dragTo = event->position().x();
}

void StallStrip::mouseReleaseEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || std::isnan(m_dragFrom))
        return;
    const double from = stepAt(std::min(m_dragFrom, m_dragTo));
    const double to = stepAt(std::max(m_dragFrom, m_dragTo));
    const bool meant = std::abs(m_dragTo - m_dragFrom) > 4.0;
    m_dragFrom = m_dragTo = kNone;
    update();
    if (meant)
        emit rangePicked(from, std::max(to, from + kFewestSteps));
}

void StallStrip::mouseDoubleClickEvent(QMouseEvent*)
{
    m_dragFrom = m_dragTo = kNone;
    emit allPicked();
}

void StallStrip::wheelEvent(QWheelEvent* event)
{
    if (!event->modifiers().testFlag(Qt::ControlModifier)) {
        event->ignore();
        return;
    }
    zoom(
        event->angleDelta().y() > 0 ? 1.0 / kStripZoom : kStripZoom, stepAt(event->position().x()));
    event->accept();
}

} // namespace mr::ui
