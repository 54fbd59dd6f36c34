// The look: light and dark palettes for the Fusion style, and the colours that mean something.
//
// Widgets ask themeColors(palette()) when they paint, so a change of theme needs no other signal
// than QEvent::PaletteChange.
//
// Threads  UI thread.

#pragma once

#include <millrace/run_reader.h>

#include <QColor>
#include <QObject>
#include <QPalette>

#include <array>

class QDBusVariant;

namespace mr::ui {

enum class ThemeChoice { System, Light, Dark };

struct ThemeColors {
    QColor card;   // panels that lie on the window
    QColor border; // hairlines around cards, axes
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
    std::array<QColor, 8> series;           // lines, kinds of bytes
    std::array<QColor, kStallCauses> stall; // in the order of StallCause
    QColor compute;
};

bool isDark(const QPalette& palette);
const ThemeColors& themeColors(const QPalette& palette);
QPalette themePalette(bool dark);

// Contrast ratio of WCAG 2 (1 to 21).
double contrastRatio(const QColor& a, const QColor& b);

// Sets style and palette of the application and follows the desktop's preference for System
// (freedesktop portal, asynchronous; light where there is none).
class Theme final : public QObject
{
    Q_OBJECT

public:
    explicit Theme(QObject* parent = nullptr);

    ThemeChoice choice() const { return m_choice; }
    void setChoice(ThemeChoice choice);

private slots:
    void portalChanged(const QString& space, const QString& key, const QDBusVariant& value);

private:
    void askPortal();
    void apply();

    ThemeChoice m_choice = ThemeChoice::System;
    bool m_systemDark = false;
};

} // namespace mr::ui
