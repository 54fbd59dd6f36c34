// ShareBarDelegate: a cell with a small stacked bar, alone or under its text.
//
// The model answers kShareRole with a ShareBar; a cell without one is painted as usual. The current
// cell has a frame; the view should select nothing, because a filled background would hide a bar of
// its colour.
//
// Threads  GUI.

#pragma once

#include "math/share_bar.h"

#include <QColor>
#include <QPalette>
#include <QStyledItemDelegate>

#include <functional>

namespace mr::ui {

class ShareBarDelegate final : public QStyledItemDelegate
{
    Q_OBJECT

public:
    using PartColor = std::function<QColor(const QPalette&, int part)>;

    enum class Style { BarOnly, BarUnderText };

    ShareBarDelegate(Style style, PartColor color, QObject* parent = nullptr);

    void paint(QPainter* painter, const QStyleOptionViewItem& option,
        const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    void paintPieces(
        QPainter& painter, const ShareBar& share, const QRectF& bar, const QPalette& palette) const;

    Style m_style;
    PartColor m_color;
};

} // namespace mr::ui
