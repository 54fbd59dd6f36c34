// The state of a run as a word, an icon and a colour; never by colour alone.

#pragma once

#include <millrace/run_status.h>

#include <QColor>
#include <QCoreApplication>
#include <QIcon>
#include <QPalette>
#include <QString>

namespace mr::ui {

// Shown state of a run: its status, and whether it is done and made its model worse.
struct ShownStatus {
    ShownStatus(RunStatus of, bool worse = false) // NOLINT(google-explicit-constructor)
        : status(of)
        , isWorse(worse)
    {
    }

    RunStatus status;
    bool isWorse;
};

struct RunStatusText {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::RunStatusText)

public:
    static QString word(ShownStatus shown);
    static QColor color(ShownStatus shown, const QPalette& palette);
    static QPixmap picture(
        ShownStatus shown, const QPalette& palette, int extent, qreal devicePixelRatio);
    // For tables: on a selected row it has the colour of the selected text.
    static QIcon icon(
        ShownStatus shown, const QPalette& palette, int extent, qreal devicePixelRatio);
};

} // namespace mr::ui
