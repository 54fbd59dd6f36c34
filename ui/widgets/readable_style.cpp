#include "widgets/readable_style.h"

#include "text/theme_colors.h"

#include <QAbstractScrollArea>
#include <QPainter>
#include <QScrollArea>
#include <QStyleFactory>
#include <QStyleOption>

namespace mr::ui {

namespace {

constexpr int kRingWidth = 2;
constexpr qreal kRingRadius = 3.0;
constexpr qsizetype kMostPalettes = 64;

// Percent by which Fusion darkens the window's colour for the frame of an element; 0: it is left
// as it is.
int darkeningOf(QStyle::PrimitiveElement element)
{
    switch (element) {
    case QStyle::PE_IndicatorCheckBox:
        return 127; // 140, then a tenth lighter
    case QStyle::PE_IndicatorRadioButton:
        return 150;
    case QStyle::PE_FrameLineEdit:
    case QStyle::PE_PanelButtonCommand:
        return 140;
    case QStyle::PE_Frame:
        return 130; // 140, then 8 percent lighter
    default:
        return 0;
    }
}

void drawRing(QPainter& painter, const QRect& rect, const QColor& color)
{
    constexpr double kInset = kRingWidth / 2.0;
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(color, kRingWidth));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(
        QRectF(rect).adjusted(kInset, kInset, -kInset, -kInset), kRingRadius, kRingRadius);
    painter.restore();
}

// Colour of the ring; on a selected row the row's own ground is near the accent.
QColor ringColor(const QStyleOption& option)
{
    const bool isOnSelection =
        (option.state & QStyle::State_Item) && (option.state & QStyle::State_Selected);
    return isOnSelection ? option.palette.color(QPalette::HighlightedText)
                         : themeColors(option.palette).accent;
}

bool hasRing(QStyle::PrimitiveElement element, const QStyleOption& option)
{
    const bool isByKeyboard = option.state & QStyle::State_KeyboardFocusChange;
    if (!(option.state & QStyle::State_HasFocus))
        return false;
    return element == QStyle::PE_FrameLineEdit || element == QStyle::PE_Frame ||
           (isByKeyboard && element == QStyle::PE_PanelButtonCommand);
}

} // namespace

ReadableStyle::ReadableStyle()
    : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion")))
{
}

// The palette whose frames come out in the theme's colour.
const QPalette& ReadableStyle::framed(const QPalette& palette, int darkening) const
{
    const std::pair key(palette.cacheKey(), darkening);
    const auto known = m_framed.constFind(key);
    if (known != m_framed.cend())
        return *known;
    if (m_framed.size() >= kMostPalettes)
        m_framed.clear();
    const ThemeColors& colors = themeColors(palette);
    QPalette own = palette;
    own.setColor(QPalette::Window, colors.frame.lighter(darkening));
    own.setColor(QPalette::Highlight, colors.accent);
    return *m_framed.insert(key, own);
}

// An area that Tab reaches, to scroll it by keys, has a frame for the ring.
void ReadableStyle::polish(QWidget* widget)
{
    QProxyStyle::polish(widget);
    auto* area = qobject_cast<QScrollArea*>(widget);
    if (area != nullptr && (area->focusPolicy() & Qt::TabFocus) &&
        area->frameShape() == QFrame::NoFrame)
        area->setFrameShape(QFrame::StyledPanel);
}

void ReadableStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option,
    QPainter* painter, const QWidget* widget) const
{
    if (element == PE_FrameFocusRect) {
        if (option->state & State_KeyboardFocusChange)
            drawRing(*painter, option->rect, ringColor(*option));
        return;
    }
    const int darkening = darkeningOf(element);
    if (darkening == 0 || !(option->state & State_Enabled)) {
        QProxyStyle::drawPrimitive(element, option, painter, widget);
        return;
    }
    // The option may be of a class below QStyleOption, which a copy would cut off.
    auto* open = const_cast<QStyleOption*>(option);
    const QPalette before = open->palette;
    const auto* area = qobject_cast<const QAbstractScrollArea*>(widget);
    if (element == PE_Frame && area != nullptr && area->viewport()->autoFillBackground())
        painter->fillRect(option->rect, before.brush(QPalette::Base));
    open->palette = framed(before, darkening);
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    open->palette = before;
    if (hasRing(element, *option))
        drawRing(*painter, option->rect, ringColor(*option));
}

void ReadableStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
    QPainter* painter, const QWidget* widget) const
{
    const bool isField = control == CC_SpinBox || control == CC_ComboBox;
    if (!isField || !(option->state & State_Enabled)) {
        QProxyStyle::drawComplexControl(control, option, painter, widget);
        return;
    }
    auto* open = const_cast<QStyleOptionComplex*>(option);
    const QPalette before = open->palette;
    constexpr int kOutline = 140;
    open->palette = framed(before, kOutline);
    QProxyStyle::drawComplexControl(control, option, painter, widget);
    open->palette = before;
    if (option->state & State_HasFocus)
        drawRing(*painter, option->rect, ringColor(*option));
}

// The frame of a text or a table is as wide as the ring, which is drawn on it.
int ReadableStyle::pixelMetric(
    PixelMetric metric, const QStyleOption* option, const QWidget* widget) const
{
    if (metric == PM_DefaultFrameWidth && qobject_cast<const QAbstractScrollArea*>(widget))
        return kRingWidth;
    return QProxyStyle::pixelMetric(metric, option, widget);
}

int ReadableStyle::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
    QStyleHintReturn* returnData) const
{
    if (hint == SH_Widget_Animation_Duration && !m_motion)
        return 0;
    return QProxyStyle::styleHint(hint, option, widget, returnData);
}

} // namespace mr::ui
