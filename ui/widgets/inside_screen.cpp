#include "widgets/inside_screen.h"

#include <algorithm>

namespace mr::ui {

namespace {

qint64 areaOf(const QRect& rect)
{
    return rect.isEmpty() ? 0 : qint64{rect.width()} * rect.height();
}

} // namespace

QRect insideScreen(const QRect& wanted, const QVector<QRect>& screens, const QMargins& frame)
{
    if (screens.isEmpty())
        return wanted;
    const QRect screen = *std::max_element(
        screens.begin(), screens.end(), [&wanted](const QRect& a, const QRect& b) {
            return areaOf(a.intersected(wanted)) < areaOf(b.intersected(wanted));
        });
    const QRect room = screen.marginsRemoved(frame);
    QRect placed(wanted.topLeft(), wanted.size().boundedTo(room.size()));
    placed.moveLeft(std::clamp(placed.left(), room.left(), room.right() + 1 - placed.width()));
    placed.moveTop(std::clamp(placed.top(), room.top(), room.bottom() + 1 - placed.height()));
    return placed;
}

} // namespace mr::ui
