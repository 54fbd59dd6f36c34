// Export of a chart: its picture and its numbers, by menu, window, clipboard and file.
//
// Errors  A message box names a file that cannot be written.

#pragma once

#include <QByteArray>
#include <QPixmap>
#include <QPoint>
#include <QString>

#include <functional>

class QWidget;

namespace mr::ui {

struct ChartExport {
    QString title;    // of the chart
    QString baseName; // file name offered, without suffix: "loss"
    std::function<QPixmap()> picture;
    std::function<QByteArray()> csv; // all points, "." as the decimal point
};

// Show as a table, copy image, save image, save data; returns when the menu is closed.
void showChartMenu(QWidget* parent, const QPoint& globalPos, const ChartExport& chart);

// Empty: written. Otherwise a sentence.
QString writeWholeFile(const QString& path, const QByteArray& bytes);

} // namespace mr::ui
