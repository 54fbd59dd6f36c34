// A stacked bar: its parts, and where they lie in a box.

#pragma once

#include <QMetaType>
#include <QRectF>
#include <QVector>

namespace mr::ui {

// The role under which a model gives a cell its bar.
inline constexpr int kShareRole = Qt::UserRole + 16;

struct ShareBar {
    QVector<double> parts;
    double whole = 0.0; // value of the full width; the sum of parts, if that is larger
};

// Where the parts lie in `box`, on whole device pixels; a part above zero has one at least.
QVector<QRectF> sharePieces(const ShareBar& bar, const QRectF& box, double devicePixelRatio);

} // namespace mr::ui

Q_DECLARE_METATYPE(mr::ui::ShareBar)
