#include "models/run_status.h"

#include "text/svg_icon.h"
#include "text/theme_colors.h"

#include <QPixmap>

#include <array>

namespace mr::ui {

namespace {

// Word, icon and colour of a status.
struct Look {
    const char* word;
    const char* icon;
    QColor ThemeColors::*color;
};

constexpr Look kWorse{
    QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Done, worse"), "warning", &ThemeColors::warning};

// By RunStatus.
constexpr std::array<Look, kRunStatuses> kLooks{{
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Draft"), "play", &ThemeColors::muted},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Queued"), "play", &ThemeColors::muted},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Starting"), "play", &ThemeColors::accent},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Running"), "play", &ThemeColors::accent},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Pausing"), "play", &ThemeColors::accent},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Paused"), "warning", &ThemeColors::warning},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Saving"), "play", &ThemeColors::accent},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Done"), "check", &ThemeColors::good},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Stopped"), "stop", &ThemeColors::muted},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Failed"), "error", &ThemeColors::error},
    {QT_TRANSLATE_NOOP("mr::ui::RunStatusText", "Interrupted"), "warning", &ThemeColors::warning},
}};

const Look& lookOf(ShownStatus shown)
{
    return shown.isWorse ? kWorse : kLooks[static_cast<std::size_t>(shown.status)];
}

QString iconName(ShownStatus shown)
{
    return QString::fromLatin1(lookOf(shown).icon);
}

} // namespace

QString RunStatusText::word(ShownStatus shown)
{
    return tr(lookOf(shown).word);
}

QColor RunStatusText::color(ShownStatus shown, const QPalette& palette)
{
    return themeColors(palette).*lookOf(shown).color;
}

QPixmap RunStatusText::picture(
    ShownStatus shown, const QPalette& palette, int extent, qreal devicePixelRatio)
{
    return svgPixmap(iconName(shown), color(shown, palette), extent, devicePixelRatio);
}

QIcon RunStatusText::icon(
    ShownStatus shown, const QPalette& palette, int extent, qreal devicePixelRatio)
{
    QIcon icon;
    icon.addPixmap(picture(shown, palette, extent, devicePixelRatio));
    icon.addPixmap(svgPixmap(iconName(shown), palette.color(QPalette::HighlightedText), extent,
                       devicePixelRatio),
        QIcon::Selected);
    return icon;
}

} // namespace mr::ui
