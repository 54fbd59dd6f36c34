// The colours that mean something, light and dark, and the palettes they belong to.
//
// Widgets ask themeColors(palette()) when they paint, so a change of theme needs no other signal
// than QEvent::PaletteChange.

#pragma once

#include <millrace/run_reader.h>

#include <QColor>
#include <QPalette>

#include <array>

namespace mr::ui {

struct ThemeColors {
    QColor card;   // panels that lie on the window
    QColor border; // hairlines around cards, axes
    QColor frame;  // edges of fields and boxes; contrast with what they stand on >= 3
    QColor grid;   // chart grid
    QColor muted;  // secondary text; contrast with card and window >= 4.5
    QColor accent; // the one colour of this program: water
    QColor good;   // text: fits, done, trained
    QColor warning;
    QColor error;
    QColor trainedFill; // token chips that carry loss
    QColor trainedText;
    QColor maskedFill; // token chips that do not
    QColor maskedText;
    // Contrast with the card >= 3.
    std::array<QColor, 8> series;           // lines, kinds of bytes
    std::array<QColor, kStallCauses> stall; // in the order of StallCause
    QColor compute;
};

// By the ground of fields: ReadableStyle draws with other colours of windows.
bool isDark(const QPalette& palette);
const ThemeColors& themeColors(const QPalette& palette);
QPalette themePalette(bool dark);

// Contrast ratio of WCAG 2 (1 to 21).
double contrastRatio(const QColor& a, const QColor& b);

} // namespace mr::ui
