// svgIcon(): one of resources/icons, drawn in the text colour of the palette at paint time.
//
// So a change of theme needs no new icons, and they are sharp at any scale.

#pragma once

#include <QIcon>
#include <QString>

class QPalette;

namespace mr::ui {

// `name` without folder and suffix: "home". An unknown name gives an empty picture.
QIcon svgIcon(const QString& name);

// Picture of svgIcon() in a colour of its own, for labels.
QPixmap svgPixmap(const QString& name, const QColor& color, int extent, qreal devicePixelRatio);

QIcon applicationIcon();

} // namespace mr::ui
