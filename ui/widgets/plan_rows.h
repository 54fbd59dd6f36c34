// Headings and coloured rows, as all parts of a plan are written.
//
// Threads    GUI.
// Ownership  New widgets belong to `owner`.

#pragma once

#include "widgets/stacked_bar.h"

#include <QString>

class QGridLayout;
class QLabel;
class QVBoxLayout;
class QWidget;

namespace mr::ui {

struct PlanRows {
    // A bold word with a number at the right end.
    static void addHeading(
        QWidget* owner, QVBoxLayout* layout, const QString& left, const QString& right);
    // Colour, name, number.
    static QGridLayout* makeGrid();
    static void addRow(QWidget* owner, QGridLayout* grid, const BarPiece& piece,
        const QString& value, const QString& toolTip);
    static QLabel* wrapped(const QString& text, QWidget* owner);
};

} // namespace mr::ui
