#include "pages/run_tables.h"

#include "charts/table_window.h"
#include "models/comparison_model.h"
#include "models/event_table_model.h"
#include "models/export_table_model.h"
#include "models/settings_model.h"
#include "models/stall_ledger_model.h"
#include "models/step_table_model.h"
#include "models/timeline_table_model.h"

#include <QCoreApplication>
#include <QHeaderView>
#include <QStyledItemDelegate>
#include <QTableView>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kCellRoom = 12;
constexpr int kMostSettings = 12; // seen at once
constexpr int kMostExports = 6;

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
    TableWindow::addCopy(table);
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
    TableWindow::addCopy(table);
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
    TableWindow::show(
        parent, model, RunTableWords::tr("Steps of %1").arg(runName), RunTableWords::tr("Steps"));
}

void RunTables::showTasks(QWidget& parent, TimelineTableModel& model)
{
    TableWindow::show(
        parent, model, RunTableWords::tr("Timeline of a step"), RunTableWords::tr("Tasks"));
}

} // namespace mr::ui
