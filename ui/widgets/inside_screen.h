// insideScreen(): where a window goes that must be seen whole, with its frame.
//
// Threads  Pure.
// Units    Device-independent pixels, in the coordinates of the desktop.

#pragma once

#include <QMargins>
#include <QRect>
#include <QVector>

namespace mr::ui {

// `wanted` without its frame, made smaller and moved until it lies in the one of `screens` that has
// most of it; in the first if none has any. No screens: `wanted`.
QRect insideScreen(const QRect& wanted, const QVector<QRect>& screens, const QMargins& frame);

} // namespace mr::ui
