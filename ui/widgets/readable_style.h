// ReadableStyle: Fusion with frames and a focus that can be seen, and without motion on request.
//
// Fusion derives its frames from the window's colour, darkened: in a dark theme a check box that is
// not ticked cannot be seen. Here frames of fields and boxes have the theme's own colour, and the
// control with the keyboard's focus has a ring (contrast at least 3 : 1, WCAG 2.1, 1.4.11).
//
// Threads    UI thread.
// Ownership  The application's, once it is set.

#pragma once

#include <QHash>
#include <QProxyStyle>

namespace mr::ui {

class ReadableStyle final : public QProxyStyle
{
    Q_OBJECT

public:
    ReadableStyle();

    // Off: no control animates.
    void setMotion(bool on) { m_motion = on; }

    using QProxyStyle::polish;
    void polish(QWidget* widget) override;
    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
        const QWidget* widget) const override;
    void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
        QPainter* painter, const QWidget* widget) const override;
    int pixelMetric(
        PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override;
    int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
        QStyleHintReturn* returnData) const override;

private:
    const QPalette& framed(const QPalette& palette, int darkening) const;

    bool m_motion = true;
    // By the key of the palette: Fusion keeps pictures of controls by the same key.
    mutable QHash<std::pair<qint64, int>, QPalette> m_framed;
};

} // namespace mr::ui
