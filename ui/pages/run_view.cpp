#include "pages/run_view.h"

#include "charts/chart_panel.h"
#include "charts/forecast_panel.h"
#include "charts/legend.h"
#include "charts/line_chart.h"
#include "charts/loss_panel.h"
#include "charts/machine_section.h"
#include "charts/memory_panel.h"
#include "charts/stall_strip.h"
#include "charts/step_charts.h"
#include "charts/tier_map.h"
#include "charts/timeline_section.h"
#include "models/event_table_model.h"
#include "models/export_table_model.h"
#include "models/stall_ledger_model.h"
#include "models/step_table_model.h"
#include "pages/pause_panel.h"
#include "pages/run_header.h"
#include "pages/run_tables.h"
#include "text/cause_colors.h"
#include "text/stall_words.h"
#include "text/units.h"

#include <QGridLayout>
#include <QPushButton>
#include <QResizeEvent>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>
#include <QVBoxLayout>

#include <cmath>

namespace mr::ui {

namespace {

constexpr int kScrollGap = 6; // between panels and scroll bar

} // namespace

RunView::RunView(QWidget* parent)
    : QWidget(parent)
    , m_header(new RunHeader)
    , m_pause(new PausePanel)
    , m_scroll(new QScrollArea)
    , m_panels(new QWidget)
    , m_grid(new QGridLayout(m_panels))
{
    makeStepCharts();
    makeStalls();
    makeLedger();
    makeTimeline();
    makeMachine();
    makeExports();
    makeLog();
    layOut();
    connect(m_header, &RunHeader::stopRequested, this, &RunView::stopRequested);
    connect(m_header, &RunHeader::resumeRequested, this, &RunView::resumeRequested);
    connect(m_header, &RunHeader::tryRequested, this, &RunView::tryRequested);
    connect(m_header, &RunHeader::closeRequested, this, &RunView::closeRequested);
    connect(m_pause, &PausePanel::answered, this, &RunView::pauseAnswered);
    arrange(2);
}

RunView::~RunView() = default;

LineChart* RunView::lossChart() const
{
    return m_loss->chart();
}

void RunView::layOut()
{
    m_grid->setContentsMargins(0, 0, kScrollGap, 0);
    m_grid->setSpacing(10);
    m_scroll->setWidget(m_panels);
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(10);
    layout->addWidget(m_header);
    layout->addWidget(m_pause);
    layout->addWidget(m_scroll, 1);
}

void RunView::makeStepCharts()
{
    m_loss = new LossPanel;
    m_showAll = new QPushButton(tr("Show all steps"));
    m_showAll->hide();
    connect(m_showAll, &QPushButton::clicked, this, &RunView::pickAll);
    m_loss->addTool(m_showAll);
    m_small = new StepCharts(this);
    m_charts.assign(m_small->charts().begin(), m_small->charts().end());
    m_charts.push_back(m_loss->chart());
    for (LineChart* chart : m_charts) {
        connect(chart, &LineChart::rangePicked, this, &RunView::pickRange);
        connect(chart, &LineChart::allPicked, this, &RunView::pickAll);
        connect(chart, &LineChart::cursorMoved, this, &RunView::setCursor);
    }
}

void RunView::makeStalls()
{
    m_strip = new StallStrip;
    m_strip->setWhatsThis(tr("One bar per step, as high as the step was long. Arrow keys move the "
                             "cursor; the tool tip has all causes."));
    m_stripPanel = new ChartPanel(tr("Time of each step"), m_strip);
    ChartExport strip;
    strip.baseName = QStringLiteral("step-times");
    strip.csv = [this] { return m_strip->csv(); };
    m_stripPanel->setExport(std::move(strip));
    connect(m_strip, &StallStrip::rangePicked, this, &RunView::pickRange);
    connect(m_strip, &StallStrip::allPicked, this, &RunView::pickAll);
    connect(m_strip, &StallStrip::cursorMoved, this, &RunView::setCursor);
    connect(m_strip, &StallStrip::readoutChanged, m_stripPanel, &ChartPanel::setReadout);
    showStripLegend(false);
    m_steps = new StepTableModel(this);
    auto* table = new QPushButton(tr("As a table…"));
    table->setAccessibleName(tr("All steps as a table"));
    connect(table, &QPushButton::clicked, this, [this] {
        RunTables::showSteps(*this, *m_steps, QString::fromStdString(m_snapshot->run.name));
    });
    m_stripPanel->addTool(table);
}

void RunView::makeLedger()
{
    m_ledger = new StallLedgerModel(this);
    m_ledger->setClickHint(tr("Click: the kept step that lost most to it."));
    QTableView* table = RunTables::ledger(*m_ledger);
    table->viewport()->setCursor(Qt::PointingHandCursor); // a row opens its worst step
    const auto open = [this](const QModelIndex& index) { showWorst(index.row()); };
    connect(table, &QTableView::clicked, this, open);
    connect(table, &QTableView::activated, this, open);
    m_ledgerPanel = new ChartPanel(tr("Where the time went"), table);
    ChartExport ledger;
    ledger.baseName = QStringLiteral("stall-ledger");
    ledger.csv = [this] { return m_ledger->csv(); };
    m_ledgerPanel->setExport(std::move(ledger));

    m_memory = new MemoryPanel;
    m_memoryPanel = new ChartPanel(tr("Memory"), m_memory);
    ChartExport memory;
    memory.baseName = QStringLiteral("memory");
    memory.csv = [this] { return m_memory->csv(); };
    m_memoryPanel->setExport(std::move(memory));
}

void RunView::makeTimeline()
{
    m_timeline = new TimelineSection;
    m_forecast = new ForecastPanel;
    m_tiers = new TierMap;
    connect(m_timeline, &TimelineSection::timelineRequested, this, &RunView::timelineRequested);
    connect(m_timeline, &TimelineSection::tableRequested, this,
        [this] { RunTables::showTasks(*this, *m_timeline->tasks()); });
}

void RunView::setTimeline(const TimelinePtr& timeline)
{
    m_timeline->setTimeline(timeline);
}

void RunView::setTimelineFailure(qint64 step, const QString& sentence)
{
    m_timeline->setFailure(step, sentence);
}

void RunView::showWorst(int ledgerRow)
{
    if (ledgerRow > static_cast<int>(kStallCauses))
        return; // beside the steps, or the total
    if (m_timeline->showWorst(static_cast<std::size_t>(ledgerRow)))
        scrollTo(m_timeline);
    else
        m_ledgerPanel->setReadout(tr("no timeline was kept of a step that lost time to it"));
}

void RunView::makeMachine()
{
    m_machine = new MachineSection;
    connect(m_machine, &MachineSection::rangePicked, this, &RunView::pickTimes);
    connect(m_machine, &MachineSection::allPicked, this, &RunView::pickAll);
    connect(m_machine, &MachineSection::cursorMoved, this, &RunView::setTimeCursor);
}

void RunView::showStripLegend(bool planned)
{
    m_forecastShown = planned;
    std::vector<Legend::Entry> entries;
    for (std::size_t part = 0; part < 1 + kStallCauses; ++part)
        entries.push_back({StallWords::name(part), StallWords::explanation(part), Legend::Mark::Box,
            [part](const QPalette& palette) { return partColor(palette, part); }});
    if (planned)
        entries.push_back(
            {tr("Forecast"), tr("The time of a step as the plan predicted it."), Legend::Mark::Dash,
                [](const QPalette& palette) { return palette.color(QPalette::WindowText); }});
    m_stripPanel->legend()->setEntries(std::move(entries));
}

void RunView::makeExports()
{
    m_exports = new ExportTableModel(this);
    m_exportsPanel = new ChartPanel(tr("Exports"), RunTables::exports(*m_exports));
    m_exportsPanel->hide();
}

void RunView::makeLog()
{
    m_events = new EventTableModel(this);
    m_eventTable = RunTables::log(*m_events);
    m_logPanel = new ChartPanel(tr("Log"), m_eventTable);
}

// From the top; disk traffic only where a run has any.
std::vector<RunView::Place> RunView::places() const
{
    std::vector<Place> places = {{m_loss, false}, {m_ledgerPanel, false}, {m_stripPanel, true},
        {m_timeline, true}, {m_forecast, true}, {m_tiers, false}, {m_memoryPanel, false},
        {m_machine, true}, {m_small->panel(StepCharts::Traffic), false}};
    if (m_diskShown)
        places.push_back({m_small->panel(StepCharts::DiskTraffic), false});
    places.insert(places.end(), {{m_small->panel(StepCharts::Speed), false},
                                    {m_small->panel(StepCharts::LearningRate), false},
                                    {m_small->panel(StepCharts::GradientNorm), false},
                                    {m_exportsPanel, true}, {m_logPanel, true}});
    return places;
}

void RunView::arrange(int columns)
{
    if (columns == m_columns && m_small->usesDisk() == m_diskShown)
        return;
    m_columns = columns;
    m_diskShown = m_small->usesDisk();
    ChartPanel* disk = m_small->panel(StepCharts::DiskTraffic);
    if (disk->parentWidget() == nullptr)
        disk->setParent(m_panels);
    m_grid->removeWidget(disk);
    disk->setVisible(m_diskShown);
    int row = 0;
    int column = 0;
    const std::vector<Place> shown = places();
    for (std::size_t i = 0; i < shown.size(); ++i) {
        m_grid->removeWidget(shown[i].panel);
        const bool alone = column == 0 && i + 1 < shown.size() && shown[i + 1].isWide;
        const int span = shown[i].isWide || alone ? columns : 1;
        m_grid->addWidget(shown[i].panel, row, column, 1, span);
        column += span;
        if (column >= columns) {
            column = 0;
            ++row;
        }
    }
    // The loss is the chart that people look at most.
    m_grid->setColumnStretch(0, columns == 2 ? 3 : 1);
    m_grid->setColumnStretch(1, columns == 2 ? 2 : 0);
}

void RunView::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    arrange(chartColumns(event->size().width()));
}

void RunView::setAnswerable(bool on)
{
    m_pause->setAnswerable(on);
}

void RunView::scrollTo(QWidget* part)
{
    m_scroll->verticalScrollBar()->setValue(part->mapTo(m_panels, QPoint()).y());
}

void RunView::startOver()
{
    for (LineChart* chart : m_charts)
        chart->clearPoints();
    m_loss->clear();
    m_machine->clear();
    m_timeline->clear();
    m_events->clear();
    m_stepsShown = 0;
    m_range.showAll();
}

void RunView::setSnapshot(const RunSnapshotPtr& snapshot)
{
    if (!m_snapshot || m_snapshot->generation != snapshot->generation ||
        m_snapshot->run.id != snapshot->run.id || snapshot->steps.size() < m_stepsShown)
        startOver();
    m_snapshot = snapshot;
    m_header->setSnapshot(snapshot);
    m_pause->setSnapshot(snapshot);
    m_steps->setSteps(snapshot->steps, m_stepsShown > 0);
    m_loss->append(snapshot->steps, m_stepsShown);
    m_loss->setEvaluations(snapshot->evalLoss);
    m_small->append(snapshot->steps, m_stepsShown);
    arrange(m_columns);
    m_stepsShown = snapshot->steps.size();
    m_strip->setSteps(snapshot->steps);
    const double planned = snapshot->plan ? snapshot->plan->predictedStepMs : 0.0;
    m_strip->setPlannedStepMs(planned);
    if (m_forecastShown != (planned > 0.0))
        showStripLegend(planned > 0.0);
    m_memory->setMemory(snapshot->plan, snapshot->run.devicePeakBytes, snapshot->run.hostPeakBytes);
    m_machine->setHistory(snapshot->machine, snapshot->run.energyJ);
    m_timeline->setSnapshot(snapshot);
    m_tiers->setPlan(snapshot->plan);
    m_exports->setExports(snapshot->exports);
    m_exportsPanel->setVisible(!snapshot->exports.empty());
    showLog();
    showRange();
}

void RunView::showLog()
{
    const QScrollBar* bar = m_eventTable->verticalScrollBar();
    const bool atEnd = bar->value() == bar->maximum();
    m_events->append(m_snapshot->events);
    if (atEnd)
        m_eventTable->scrollToBottom();
}

void RunView::showRange()
{
    const StepSeries& steps = m_snapshot->steps;
    m_range.follow(steps, m_snapshot->evalLoss);
    m_showAll->setVisible(!m_range.isAll());
    const RunRange::Ends shown = m_range.steps();
    for (LineChart* chart : m_charts)
        chart->setRange(shown.lower, shown.upper);
    m_strip->setRange(shown.lower, shown.upper);
    const RunRange::Ends times =
        m_range.seconds(steps, m_snapshot->machine ? m_snapshot->machine->endMs : 0);
    m_machine->setRange(times.lower, times.upper);
    m_forecast->setRun(*m_snapshot, shown.lower, shown.upper);
    showLedger();
}

void RunView::pickRange(double lower, double upper)
{
    if (!m_snapshot)
        return;
    m_range.pickSteps(m_snapshot->steps, {lower, upper});
    showRange();
}

void RunView::pickTimes(double lower, double upper)
{
    if (!m_snapshot)
        return;
    m_range.pickSeconds(m_snapshot->steps, {lower, upper});
    showRange();
}

void RunView::pickAll()
{
    m_range.showAll();
    if (m_snapshot)
        showRange();
}

void RunView::setCursors(double step, double seconds)
{
    for (LineChart* chart : m_charts)
        chart->setCursor(step);
    m_strip->setCursor(step);
    m_machine->setCursor(seconds);
}

void RunView::setCursor(double step)
{
    const StepSeries none;
    setCursors(step, RunRange::secondsOfStep(m_snapshot ? m_snapshot->steps : none, step));
}

void RunView::setTimeCursor(double seconds)
{
    const StepSeries none;
    setCursors(RunRange::stepAtSeconds(m_snapshot ? m_snapshot->steps : none, seconds), seconds);
}

void RunView::showLedger()
{
    const RunRange::Ends shown = m_range.steps();
    LedgerTotals totals = ledgerTotals(m_snapshot->steps, shown.lower, shown.upper);
    if (m_range.isAll())
        addIntervals(totals, m_snapshot->intervals);
    m_ledger->setTotals(totals);
    m_ledgerPanel->setReadout(totals.steps == 0 ? QString()
                              : m_range.isAll()
                                  ? tr("all of the run, %1 steps").arg(countText(totals.steps))
                                  : tr("steps %1 to %2")
                                        .arg(countText(std::llround(std::ceil(shown.lower))),
                                            countText(std::llround(std::floor(shown.upper)))));
}

} // namespace mr::ui
