// Colours of the parts of a step's time, in the order of StallWords.

#pragma once

#include "text/theme_colors.h"

#include <QColor>
#include <QPalette>

#include <cstddef>

namespace mr::ui {

inline QColor partColor(const QPalette& palette, std::size_t part)
{
    const ThemeColors& colors = themeColors(palette);
    return part == 0 ? colors.compute : colors.stall[part - 1];
}

} // namespace mr::ui
