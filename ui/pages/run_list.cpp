#include "pages/run_list.h"

#include "models/run_filter_model.h"
#include "models/run_status.h"
#include "models/run_table_model.h"
#include "text/method_words.h"
#include "text/table_text.h"
#include "text/units.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDateTime>
#include <QHeaderView>
#include <QSettings>

#include <algorithm>
#include <array>
#include <utility>

namespace mr::ui {

namespace {

constexpr int kNameWidth = 170;
// Columns of the bin: they tell runs apart, and say until when each can be restored.
constexpr std::array kBinColumns = {RunTableModel::Status, RunTableModel::Name,
    RunTableModel::Steps, RunTableModel::Model, RunTableModel::Dataset, RunTableModel::Date,
    RunTableModel::Tags, RunTableModel::Note, RunTableModel::KeptUntil};

} // namespace

RunList::RunList(Place place, QWidget* parent)
    : QTableView(parent)
    , m_place(place)
    , m_runs(new RunTableModel(this))
    , m_filter(new RunFilterModel(this))
{
    m_filter->setSourceModel(m_runs);
    setModel(m_filter);
    setSelectionBehavior(SelectRows);
    setEditTriggers(NoEditTriggers);
    setAlternatingRowColors(true);
    setShowGrid(false);
    setWordWrap(false);
    setTabKeyNavigation(false);
    setSortingEnabled(true);
    setHorizontalScrollMode(ScrollPerPixel);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 10);
    setContextMenuPolicy(Qt::CustomContextMenu);
    setMinimumHeight(fontMetrics().height() * 7);
    horizontalHeader()->setSectionsMovable(true);
    horizontalHeader()->setHighlightSections(false);
    sizeColumns();
    addKey(QKeySequence::Copy, [this] { copySelection(QLatin1Char('\t')); });
}

RunList::~RunList() = default;

QString RunList::settingsKey() const
{
    return m_place == Place::Bin ? QStringLiteral("bin/columns-v2")
                                 : QStringLiteral("history/columns-v3");
}

void RunList::sizeColumns()
{
    QHeaderView* header = horizontalHeader();
    for (int column = 0; column < RunTableModel::ColumnCount; ++column) {
        const QString title =
            m_runs->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
        const int least = fontMetrics().horizontalAdvance(title) + 34; // with the sort arrow
        header->resizeSection(column,
            std::max(least, fontMetrics().horizontalAdvance(QStringLiteral("000,000,000"))));
    }
    const auto fit = [&](RunTableModel::Column column, const QString& longest) {
        header->resizeSection(column, fontMetrics().horizontalAdvance(longest) + 18);
    };
    const QString moment = momentText(QDateTime::currentMSecsSinceEpoch()) + QStringLiteral("00");
    fit(RunTableModel::Status, RunStatusText::word(RunStatus::Lost) + QStringLiteral("MMM"));
    fit(RunTableModel::Steps, QStringLiteral("10,000 / 10,000"));
    for (const auto column : {RunTableModel::Name, RunTableModel::Dataset, RunTableModel::Note})
        header->resizeSection(column, kNameWidth);
    fit(RunTableModel::Model, QStringLiteral("Llama-3.2-1B-Instruct"));
    fit(RunTableModel::Policy, QStringLiteral("deep-optimizer-states"));
    fit(RunTableModel::Method, MethodWords::adapter(128, true) + QStringLiteral("MM"));
    fit(RunTableModel::Date, moment);
    fit(RunTableModel::KeptUntil, moment);
    header->moveSection(header->visualIndex(RunTableModel::Tags), 2); // beside the name
    const bool isBin = m_place == Place::Bin;
    if (isBin)
        header->moveSection(header->visualIndex(RunTableModel::KeptUntil), 2);
    sortByColumn(isBin ? RunTableModel::KeptUntil : RunTableModel::Date, Qt::DescendingOrder);
    header->restoreState(QSettings().value(settingsKey()).toByteArray());
    for (int column = 0; column < RunTableModel::ColumnCount; ++column) {
        const bool isOfBin =
            std::find(kBinColumns.begin(), kBinColumns.end(), column) != kBinColumns.end();
        setColumnHidden(column, isBin ? !isOfBin : column == RunTableModel::KeptUntil);
    }
}

void RunList::setRuns(const RunRowsPtr& runs)
{
    m_runs->setRuns(runs);
}

const RunRow* RunList::selectedRun() const
{
    const QModelIndexList rows = selectionModel()->selectedRows();
    return rows.size() == 1 ? m_runs->run(m_filter->mapToSource(rows.first()).row()) : nullptr;
}

std::vector<RunRow> RunList::selectedRuns() const
{
    std::vector<RunRow> chosen;
    for (const QModelIndex& row : selectionModel()->selectedRows())
        chosen.push_back(*m_runs->run(m_filter->mapToSource(row).row()));
    std::sort(
        chosen.begin(), chosen.end(), [](const RunRow& a, const RunRow& b) { return a.id < b.id; });
    return chosen;
}

std::vector<std::int64_t> RunList::selectedIds() const
{
    std::vector<std::int64_t> ids;
    for (const RunRow& run : selectedRuns())
        ids.push_back(run.id);
    return ids;
}

void RunList::choose(qint64 runId)
{
    const int row = m_runs->rowOf(runId);
    const QModelIndex shown = m_filter->mapFromSource(m_runs->index(row, 0));
    if (row >= 0 && shown.isValid())
        selectionModel()->setCurrentIndex(
            shown, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

void RunList::copySelection(QChar separator) const
{
    QApplication::clipboard()->setText(
        tableText(*m_filter, selectionModel()->selectedRows(), separator));
}

void RunList::renameSelected()
{
    const QModelIndexList rows = selectionModel()->selectedRows(RunTableModel::Name);
    if (rows.size() != 1)
        return;
    scrollTo(rows.first());
    edit(rows.first());
}

void RunList::addKey(const QKeySequence& key, std::function<void()> what)
{
    auto* action = new QAction(this);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WidgetShortcut);
    connect(action, &QAction::triggered, this, std::move(what));
    addAction(action);
}

void RunList::saveColumns() const
{
    QSettings().setValue(settingsKey(), horizontalHeader()->saveState());
}

} // namespace mr::ui
