#include "charts/chart_export.h"

#include "charts/table_window.h"

#include <QApplication>
#include <QBuffer>
#include <QClipboard>
#include <QCoreApplication>
#include <QFileDialog>
#include <QMenu>
#include <QMessageBox>
#include <QSaveFile>
#include <QStandardPaths>

namespace mr::ui {

namespace {

struct ExportWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::ChartExport)
};

QByteArray pngOf(const QPixmap& picture)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    picture.save(&buffer, "PNG");
    return bytes;
}

void save(QWidget* parent, const QString& name, const QString& filter, const QByteArray& bytes)
{
    const QString folder =
        QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation) + QLatin1Char('/');
    const QString path =
        QFileDialog::getSaveFileName(parent, ExportWords::tr("Save"), folder + name, filter);
    if (path.isEmpty())
        return;
    const QString problem = writeWholeFile(path, bytes);
    if (!problem.isEmpty())
        QMessageBox::warning(parent, ExportWords::tr("Save"), problem);
}

} // namespace

QString writeWholeFile(const QString& path, const QByteArray& bytes)
{
    QSaveFile file(path);
    if (file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size() && file.commit())
        return {};
    return ExportWords::tr("%1 could not be written: %2").arg(path, file.errorString());
}

void showChartMenu(QWidget* parent, const QPoint& globalPos, const ChartExport& chart)
{
    // The picture is taken before the menu and its shadow can be in it.
    const QPixmap picture = chart.picture();
    QMenu menu(parent);
    const QAction* table = menu.addAction(ExportWords::tr("Show as a table…"));
    const QAction* copy = menu.addAction(ExportWords::tr("Copy image"));
    const QAction* image = menu.addAction(ExportWords::tr("Save image as PNG…"));
    const QAction* data = menu.addAction(ExportWords::tr("Save data as CSV…"));
    const QAction* chosen = menu.exec(globalPos);
    if (chosen == nullptr)
        return;
    if (chosen == table)
        TableWindow::showCsv(*parent, chart.csv(), chart.title);
    else if (chosen == copy)
        QApplication::clipboard()->setPixmap(picture);
    else if (chosen == image)
        save(parent, chart.baseName + QStringLiteral(".png"), ExportWords::tr("PNG image (*.png)"),
            pngOf(picture));
    else if (chosen == data)
        save(parent, chart.baseName + QStringLiteral(".csv"), ExportWords::tr("CSV table (*.csv)"),
            chart.csv());
}

} // namespace mr::ui
