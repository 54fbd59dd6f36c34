#include "models/run_status.h"

#include "theme.h"
#include "widgets/svg_icon.h"

#include <QPixmap>

namespace mr::ui {

namespace {

QString iconName(const std::string& status)
{
    if (status == "done")
        return QStringLiteral("check");
    if (status == "failed")
        return QStringLiteral("error");
    if (status == "lost" || status == "paused" || status == "done_worse")
        return QStringLiteral("warning");
    if (status == "stopped")
        return QStringLiteral("stop");
    return QStringLiteral("play");
}

} // namespace

QString RunStatusText::word(const std::string& status)
{
    struct Word {
        const char* status;
        const char* text;
    };
    static constexpr Word kWords[] = {
        {"draft", QT_TR_NOOP("Draft")},
        {"queued", QT_TR_NOOP("Queued")},
        {"starting", QT_TR_NOOP("Starting")},
        {"running", QT_TR_NOOP("Running")},
        {"pausing", QT_TR_NOOP("Pausing")},
        {"paused", QT_TR_NOOP("Paused")},
        {"saving", QT_TR_NOOP("Saving")},
        {"done", QT_TR_NOOP("Done")},
        {"done_worse", QT_TR_NOOP("Done, worse")},
        {"stopped", QT_TR_NOOP("Stopped")},
        {"failed", QT_TR_NOOP("Failed")},
        {"lost", QT_TR_NOOP("Interrupted")},
    };
    for (const Word& word : kWords) {
        if (status == word.status)
            return tr(word.text);
    }
    return QString::fromStdString(status);
}

QColor RunStatusText::color(const std::string& status, const QPalette& palette)
{
    const ThemeColors& colors = themeColors(palette);
    if (status == "done")
        return colors.good;
    if (status == "failed")
        return colors.error;
    if (status == "lost" || status == "paused" || status == "done_worse")
        return colors.warning;
    if (status == "stopped" || status == "draft" || status == "queued")
        return colors.muted;
    return colors.accent;
}

QPixmap RunStatusText::picture(
    const std::string& status, const QPalette& palette, int extent, qreal devicePixelRatio)
{
    return svgPixmap(iconName(status), color(status, palette), extent, devicePixelRatio);
}

QIcon RunStatusText::icon(
    const std::string& status, const QPalette& palette, int extent, qreal devicePixelRatio)
{
    QIcon icon;
    icon.addPixmap(picture(status, palette, extent, devicePixelRatio));
    icon.addPixmap(svgPixmap(iconName(status), palette.color(QPalette::HighlightedText), extent,
                       devicePixelRatio),
        QIcon::Selected);
    return icon;
}

} // namespace mr::ui
