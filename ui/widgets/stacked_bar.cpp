#include "widgets/stacked_bar.h"

#include "text/format.h"
#include "text/theme_colors.h"

#include <QHelpEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>

#include <algorithm>
#include <numeric>

namespace mr::ui {

StackedBarLayout StackedBarLayout::make(
    const QVector<BarPiece>& pieces, quint64 limit, double width)
{
    const quint64 total = std::accumulate(pieces.begin(), pieces.end(), quint64{0},
        [](quint64 sum, const BarPiece& piece) { return sum + piece.bytes; });
    const auto end = static_cast<double>(std::max(total, limit));
    StackedBarLayout layout;
    layout.limitX = width;
    double left = 0.0;
    for (const BarPiece& piece : pieces) {
        const double share = end > 0.0 ? static_cast<double>(piece.bytes) / end : 0.0;
        layout.pieces.push_back({left, share * width});
        left += share * width;
    }
    if (limit > 0 && end > 0.0)
        layout.limitX = static_cast<double>(limit) / end * width;
    return layout;
}

StackedBar::StackedBar(QWidget* parent)
    : QWidget(parent)
{
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAttribute(Qt::WA_Hover);
}

void StackedBar::setData(QVector<BarPiece> pieces, quint64 limit)
{
    m_pieces = std::move(pieces);
    m_limit = limit;
    update();
}

void StackedBar::setThin(bool thin)
{
    m_thin = thin;
    updateGeometry();
}

void StackedBar::setPlainToolTips()
{
    m_plainToolTips = true;
}

QSize StackedBar::sizeHint() const
{
    return m_thin ? QSize(90, 10) : QSize(240, 18);
}

QSize StackedBar::minimumSizeHint() const
{
    return m_thin ? QSize(48, 10) : QSize(80, 18);
}

bool StackedBar::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto layout = StackedBarLayout::make(m_pieces, m_limit, width());
    for (int i = 0; i < m_pieces.size(); ++i) {
        const auto& span = layout.pieces[i];
        if (help->x() < span.left || help->x() >= span.left + span.width)
            continue;
        const BarPiece& piece = m_pieces[i];
        QToolTip::showText(help->globalPos(),
            m_plainToolTips ? piece.name
                            : piece.name + QLatin1Char('\n') + Format::exactBytes(piece.bytes),
            this);
        return true;
    }
    QToolTip::hideText();
    return true;
}

void StackedBar::paintEvent(QPaintEvent*)
{
    const ThemeColors& colors = themeColors(palette());
    const QRectF frame = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
    const qreal radius = m_thin ? 3.0 : 4.0;
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    QPainterPath shape;
    shape.addRoundedRect(frame, radius, radius);
    painter.fillPath(shape, colors.card);
    painter.setClipPath(shape);
    const auto layout = StackedBarLayout::make(m_pieces, m_limit, frame.width());
    for (int i = 0; i < m_pieces.size(); ++i) {
        const auto& span = layout.pieces[i];
        painter.fillRect(QRectF(frame.left() + span.left, frame.top(), span.width, frame.height()),
            m_pieces[i].color);
        if (i > 0) // neighbours may share a colour
            painter.fillRect(
                QRectF(frame.left() + span.left, frame.top(), 1.0, frame.height()), colors.card);
    }
    if (m_limit > 0 && layout.limitX < frame.width()) {
        painter.setPen(QPen(colors.error, 2.0));
        const double x = frame.left() + layout.limitX;
        painter.drawLine(QPointF(x, frame.top()), QPointF(x, frame.bottom()));
    }
    painter.setClipping(false);
    painter.setPen(colors.frame);
    painter.drawPath(shape);
}

} // namespace mr::ui
