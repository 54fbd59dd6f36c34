#include "pages/run_tables.h"

#include "models/comparison_model.h"
#include "models/event_table_model.h"
#include "models/export_table_model.h"
#include "models/settings_model.h"
#include "models/stall_ledger_model.h"
#include "models/step_table_model.h"
#include "models/timeline_table_model.h"
#include "text/table_text.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QHeaderView>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kLeastTableColumn = 50;
constexpr int kColumnRoom = 20;
constexpr int kCellRoom = 12;
constexpr int kMeasuredRows = 100;
constexpr int kMostSettings = 12; // seen at once
constexpr int kMostExports = 6;
constexpr QSize kTableSize(900, 500);

struct RunTableWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::RunTables)
};

// Columns of text that touch are read as one.
class RoomyDelegate final : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        return QStyledItemDelegate::sizeHint(option, index) + QSize(kCellRoom, 0);
    }
};

void makePlain(QTableView* table)
{
    table->setFrameShape(QFrame::NoFrame);
    table->viewport()->setAutoFillBackground(false); // the card shows through
    table->setShowGrid(false);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setTabKeyNavigation(false);
    table->verticalHeader()->hide();
    table->horizontalHeader()->setHighlightSections(false);
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
    table->setWordWrap(false);
}

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

void addCopy(QTableView* table)
{
    auto* copy = new QAction(RunTableWords::tr("Copy"), table);
    copy->setShortcut(QKeySequence::Copy);
    copy->setShortcutContext(Qt::WidgetShortcut);
    QObject::connect(copy, &QAction::triggered, table, [table] {
        QApplication::clipboard()->setText(
            tableText(*table->model(), table->selectionModel()->selectedRows(), QLatin1Char('\t')));
    });
    table->addAction(copy);
    table->setContextMenuPolicy(Qt::ActionsContextMenu);
}

void showWindow(
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
}

} // namespace

QTableView* RunTables::ledger(StallLedgerModel& model)
{
    auto* table = new QTableView;
    table->setModel(&model);
    makePlain(table);
    table->setAccessibleName(RunTableWords::tr("Where the time went"));
    table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table->horizontalHeader()->setSectionResizeMode(StallLedgerModel::Part, QHeaderView::Stretch);
    const auto fit = [table, &model] {
        const int rowHeight = table->verticalHeader()->defaultSectionSize();
        table->setMinimumHeight(rowHeight * (model.rowCount() + 1) + 6);
    };
    fit();
    QObject::connect(&model, &QAbstractItemModel::modelReset, table, fit);
    return table;
}

QTableView* RunTables::figures(ComparisonModel& model)
{
    auto* table = new QTableView;
    table->setModel(&model);
    table->setItemDelegate(new RoomyDelegate(table));
    makePlain(table);
    table->setAccessibleName(RunTableWords::tr("Figures of both runs"));
    table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    QHeaderView* header = table->horizontalHeader();
    header->setSectionResizeMode(QHeaderView::ResizeToContents);
    header->setSectionResizeMode(ComparisonModel::What, QHeaderView::Stretch);
    const int rowHeight = table->verticalHeader()->defaultSectionSize();
    table->setMinimumHeight(rowHeight * (model.rowCount() + 1) + 6);
    return table;
}

QTableView* RunTables::settings(SettingsModel& model)
{
    auto* table = new QTableView;
    table->setModel(&model);
    makePlain(table);
    addCopy(table);
    table->setAccessibleName(RunTableWords::tr("Settings of both runs"));
    table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    const auto fit = [table, &model] {
        const int rows = std::clamp(model.rowCount(), 1, kMostSettings);
        const int rowHeight = table->verticalHeader()->defaultSectionSize();
        table->setFixedHeight(rowHeight * (rows + 1) + 8);
    };
    QObject::connect(&model, &QAbstractItemModel::modelReset, table, fit);
    fit();
    return table;
}

QTableView* RunTables::log(EventTableModel& model)
{
    auto* table = new QTableView;
    table->setModel(&model);
    makePlain(table);
    table->setAccessibleName(RunTableWords::tr("Log of the run"));
    QHeaderView* header = table->horizontalHeader();
    header->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    header->setSectionResizeMode(QHeaderView::ResizeToContents);
    header->setSectionResizeMode(EventTableModel::Text, QHeaderView::Stretch);
    return table;
}

QTableView* RunTables::exports(ExportTableModel& model)
{
    auto* table = new QTableView;
    table->setModel(&model);
    makePlain(table);
    addCopy(table);
    table->setAccessibleName(RunTableWords::tr("Exports of the run"));
    table->setItemDelegate(new RoomyDelegate(table));
    table->setTextElideMode(Qt::ElideMiddle); // of a path the name counts
    QHeaderView* header = table->horizontalHeader();
    header->setSectionResizeMode(QHeaderView::ResizeToContents);
    header->setSectionResizeMode(ExportTableModel::Path, QHeaderView::Stretch);
    const auto fit = [table, &model] {
        const int rows = std::clamp(model.rowCount(), 1, kMostExports);
        const int rowHeight = table->verticalHeader()->defaultSectionSize();
        table->setFixedHeight(rowHeight * (rows + 1) + 8);
    };
    QObject::connect(&model, &QAbstractItemModel::modelReset, table, fit);
    fit();
    return table;
}

void RunTables::showSteps(QWidget& parent, StepTableModel& model, const QString& runName)
{
    showWindow(
        parent, model, RunTableWords::tr("Steps of %1").arg(runName), RunTableWords::tr("Steps"));
}

void RunTables::showTasks(QWidget& parent, TimelineTableModel& model)
{
    showWindow(parent, model, RunTableWords::tr("Timeline of a step"), RunTableWords::tr("Tasks"));
}

} // namespace mr::ui
