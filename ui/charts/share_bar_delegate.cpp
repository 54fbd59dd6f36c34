#include "charts/share_bar_delegate.h"

#include "text/theme_colors.h"

#include <QAbstractItemView>
#include <QApplication>
#include <QPainter>
#include <QStyle>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace mr::ui {

namespace {

constexpr double kRoom = 4.0;     // left and right of bar and text
constexpr double kBarShare = 0.5; // height of a bar without text, as a share of the cell's
constexpr double kLine = 5.0;     // height of a bar below a text
constexpr double kLineRoom = 3.0; // below that
constexpr double kFrame = 2.0;

// Filled strips: no pen is wider than a device pixel.
void paintFrame(QPainter& painter, const QRectF& box, const QColor& color)
{
    painter.fillRect(QRectF(box.left(), box.top(), box.width(), kFrame), color);
    painter.fillRect(QRectF(box.left(), box.bottom() - kFrame, box.width(), kFrame), color);
    painter.fillRect(QRectF(box.left(), box.top(), kFrame, box.height()), color);
    painter.fillRect(QRectF(box.right() - kFrame, box.top(), kFrame, box.height()), color);
}

} // namespace

ShareBarDelegate::ShareBarDelegate(Style style, PartColor color, QObject* parent)
    : QStyledItemDelegate(parent)
    , m_style(style)
    , m_color(std::move(color))
{
}

void ShareBarDelegate::paint(
    QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    QStyleOptionViewItem cell = option;
    initStyleOption(&cell, index);
    const double ratio = painter->device()->devicePixelRatioF();
    const QString text = std::exchange(cell.text, QString());
    const auto* view = qobject_cast<const QAbstractItemView*>(cell.widget);
    const bool isCurrent = view != nullptr && view->currentIndex() == index;
    cell.state &= ~(QStyle::State_Selected | QStyle::State_HasFocus);
    const QStyle* style = cell.widget ? cell.widget->style() : QApplication::style();
    style->drawControl(QStyle::CE_ItemViewItem, &cell, painter, cell.widget);
    const QRectF box = QRectF(cell.rect).adjusted(kRoom, 0.0, -kRoom, 0.0);
    const bool under = m_style == Style::BarUnderText;
    const double height = std::round((under ? kLine : box.height() * kBarShare) * ratio) / ratio;
    const double top = under ? box.bottom() - height - kLineRoom : box.center().y() - height / 2.0;
    painter->setFont(cell.font);
    painter->setPen(cell.palette.color(QPalette::Text));
    painter->drawText(box.adjusted(0.0, 0.0, 0.0, under ? top - box.bottom() : 0.0),
        static_cast<int>(cell.displayAlignment), text);
    if (const QVariant value = index.data(kShareRole); value.canConvert<ShareBar>())
        paintPieces(*painter, value.value<ShareBar>(),
            QRectF(std::round(box.left() * ratio) / ratio, std::round(top * ratio) / ratio,
                box.width(), height),
            cell.palette);
    if (isCurrent)
        paintFrame(*painter, cell.rect,
            view->hasFocus() ? cell.palette.color(QPalette::Highlight)
                             : themeColors(cell.palette).border);
}

QSize ShareBarDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    return QStyledItemDelegate::sizeHint(option, index) + QSize(static_cast<int>(2.0 * kRoom), 0);
}

void ShareBarDelegate::paintPieces(
    QPainter& painter, const ShareBar& share, const QRectF& bar, const QPalette& palette) const
{
    const double ratio = painter.device()->devicePixelRatioF();
    for (int part = 0; const QRectF& piece : sharePieces(share, bar, ratio)) {
        const QColor color = m_color(palette, part++);
        if (piece.width() <= 0.0)
            continue;
        painter.fillRect(piece, color);
        // Neighbours may look alike on a poor screen.
        if (piece.left() > bar.left())
            painter.fillRect(QRectF(piece.left(), piece.top(), 1.0 / ratio, piece.height()),
                themeColors(palette).card);
    }
}

} // namespace mr::ui
