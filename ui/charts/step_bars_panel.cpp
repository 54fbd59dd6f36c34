#include "charts/step_bars_panel.h"

#include "charts/legend.h"
#include "charts/share_bar_delegate.h"
#include "text/cause_colors.h"
#include "text/stall_words.h"

#include <QHeaderView>
#include <QTableView>

namespace mr::ui {

namespace {

constexpr int kLeastColumn = 60;
constexpr int kRowRoom = 14; // tall rows: the bars are the content

} // namespace

StepBarsPanel::StepBarsPanel(QWidget* parent)
    : StepBarsPanel(new QTableView, parent)
{
}

StepBarsPanel::StepBarsPanel(QTableView* table, QWidget* parent)
    : ChartPanel(tr("Where the time of a step goes"), table, parent)
    , m_table(table)
    , m_model(new StepBarsModel(this))
{
    setUpTable();
    showLegend();
    setReadout(tr("mean of all steps, both on one scale"));
    ChartExport bars;
    bars.baseName = QStringLiteral("mean-steps");
    bars.csv = [this] { return m_model->csv(); };
    setExport(std::move(bars));
}

void StepBarsPanel::setUpTable()
{
    m_table->setModel(m_model);
    m_table->setItemDelegate(new ShareBarDelegate(
        ShareBarDelegate::Style::BarOnly,
        [](const QPalette& palette, int part) {
            return partColor(palette, static_cast<std::size_t>(part));
        },
        m_table));
    m_table->setAccessibleName(tr("Mean time of a step of both runs"));
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->viewport()->setAutoFillBackground(false); // the card shows through
    m_table->setShowGrid(false);
    m_table->setWordWrap(false);
    m_table->setSelectionMode(QAbstractItemView::NoSelection);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setTabKeyNavigation(false);
    m_table->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + kRowRoom);
    QHeaderView* header = m_table->horizontalHeader();
    header->setHighlightSections(false);
    header->setSectionResizeMode(QHeaderView::ResizeToContents);
    header->setSectionResizeMode(StepBarsModel::Picture, QHeaderView::Stretch);
    header->setMinimumSectionSize(kLeastColumn);
    m_table->setFixedHeight(header->sizeHint().height() +
                            StepBarsModel::kRuns * m_table->verticalHeader()->defaultSectionSize() +
                            4);
}

void StepBarsPanel::showLegend()
{
    std::vector<Legend::Entry> entries;
    for (std::size_t part = 0; part < 1 + kStallCauses; ++part)
        entries.push_back({StallWords::name(part), StallWords::explanation(part), Legend::Mark::Box,
            [part](const QPalette& palette) { return partColor(palette, part); }});
    legend()->setEntries(std::move(entries));
}

void StepBarsPanel::setRuns(const StepBarsModel::Run& first, const StepBarsModel::Run& second)
{
    m_model->setRuns(first, second);
}

} // namespace mr::ui
