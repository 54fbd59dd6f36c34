// The state of a run as a word, an icon and a colour; never by colour alone.

#pragma once

#include <QColor>
#include <QCoreApplication>
#include <QIcon>
#include <QPalette>
#include <QString>

#include <string>

namespace mr::ui {

struct RunStatusText {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::RunStatusText)

public:
    // `status` as in RunRow, or as OutcomeWords says of it; an unknown one is shown as it is.
    static QString word(const std::string& status);
    static QColor color(const std::string& status, const QPalette& palette);
    static QPixmap picture(
        const std::string& status, const QPalette& palette, int extent, qreal devicePixelRatio);
    // The same for tables: on a selected row it has the colour of the selected text.
    static QIcon icon(
        const std::string& status, const QPalette& palette, int extent, qreal devicePixelRatio);
};

} // namespace mr::ui
