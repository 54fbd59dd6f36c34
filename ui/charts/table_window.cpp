#include "charts/table_window.h"

#include "models/csv_table_model.h"
#include "text/table_text.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QHeaderView>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kLeastTableColumn = 50;
constexpr int kColumnRoom = 20;
constexpr int kMeasuredRows = 100;
constexpr QSize kTableSize(900, 500);

struct TableWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::TableWindow)
};

// To the titles and the first rows: all of them would take long.
void fitColumns(QTableView& table)
{
    const QFontMetrics metrics = table.fontMetrics();
    const QAbstractItemModel& model = *table.model();
    for (int column = 0; column < model.columnCount(); ++column) {
        const QString title = model.headerData(column, Qt::Horizontal).toString();
        int width = std::max(metrics.horizontalAdvance(title), kLeastTableColumn);
        for (int row = 0; row < std::min(model.rowCount(), kMeasuredRows); ++row)
            width = std::max(
                width, metrics.horizontalAdvance(model.index(row, column).data().toString()));
        table.setColumnWidth(column, width + kColumnRoom);
    }
}

} // namespace

void TableWindow::addCopy(QTableView* table)
{
    auto* copy = new QAction(TableWords::tr("Copy"), table);
    copy->setShortcut(QKeySequence::Copy);
    copy->setShortcutContext(Qt::WidgetShortcut);
    QObject::connect(copy, &QAction::triggered, table, [table] {
        QApplication::clipboard()->setText(
            tableText(*table->model(), table->selectionModel()->selectedRows(), QLatin1Char('\t')));
    });
    table->addAction(copy);
    table->setContextMenuPolicy(Qt::ActionsContextMenu);
}

QDialog* TableWindow::show(
    QWidget& parent, QAbstractItemModel& model, const QString& title, const QString& name)
{
    auto* window = new QDialog(&parent);
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->setWindowTitle(title);
    auto* table = new QTableView;
    table->setModel(&model);
    table->setAccessibleName(name);
    table->setAlternatingRowColors(true);
    table->setShowGrid(false);
    table->setTabKeyNavigation(false);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->verticalHeader()->hide();
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
    fitColumns(*table);
    addCopy(table);
    auto* layout = new QVBoxLayout(window);
    layout->addWidget(table);
    window->resize(kTableSize);
    window->show();
    table->setFocus();
    return window;
}

void TableWindow::showCsv(QWidget& parent, const QByteArray& csv, const QString& title)
{
    auto* model = new CsvTableModel(csv);
    model->setParent(show(parent, *model, title, title));
}

} // namespace mr::ui
