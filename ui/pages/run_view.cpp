#include "pages/run_view.h"

#include "charts/cause_colors.h"
#include "charts/chart_panel.h"
#include "charts/legend.h"
#include "charts/line_chart.h"
#include "charts/memory_panel.h"
#include "charts/stall_strip.h"
#include "models/event_table_model.h"
#include "models/stall_ledger_model.h"
#include "models/stall_words.h"
#include "models/step_table_model.h"
#include "models/table_text.h"
#include "models/units.h"
#include "pages/run_header.h"
#include "theme.h"

#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QDialog>
#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QResizeEvent>
#include <QScrollArea>
#include <QScrollBar>
#include <QSpinBox>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

constexpr int kScrollGap = 6;        // between panels and scroll bar
constexpr int kTwoColumnsFrom = 860; // logical pixels
constexpr double kFewestSteps = 10.0;
constexpr double kEndRoom = 0.008; // of the range, at each end
constexpr double kWindow = 25.0;   // steps, of the smoothed loss
constexpr int kMaxWindow = 10000;
constexpr double kGiga = 1e9;
constexpr int kLeastColumn = 50; // of the table of steps
constexpr int kColumnRoom = 20;
constexpr QSize kTableSize(900, 500);

enum LossSeries { Raw, Smoothed, Evaluated };
enum TrafficSeries { Up, Down };

// A table that is as high as its rows, without frame: a part of its panel.
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

double perSecond(std::int64_t amount, std::int64_t us)
{
    return us > 0 ? static_cast<double>(amount) / static_cast<double>(us) * 1e6
                  : std::numeric_limits<double>::quiet_NaN();
}

} // namespace

RunView::RunView(QWidget* parent)
    : QWidget(parent)
    , m_ema(kWindow)
    , m_header(new RunHeader)
    , m_scroll(new QScrollArea)
    , m_panels(new QWidget)
    , m_grid(new QGridLayout(m_panels))
{
    makeLoss();
    makeStalls();
    makeLedger();
    makeTraffic();
    makeSpeed();
    makeOptimizer();
    makeLog();
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
    layout->addWidget(m_scroll, 1);
    connect(m_header, &RunHeader::stopRequested, this, &RunView::stopRequested);
    connect(m_header, &RunHeader::resumeRequested, this, &RunView::resumeRequested);
    connect(m_header, &RunHeader::closeRequested, this, &RunView::closeRequested);
    arrange(2);
}

RunView::~RunView() = default;

LineChart* RunView::addLineChart(const QString& title, const QString& fileName, ChartPanel*& panel)
{
    auto* chart = new LineChart(title);
    panel = new ChartPanel(title, chart);
    ChartExport chartExport;
    chartExport.baseName = fileName;
    chartExport.csv = [chart] { return chart->csv(); };
    panel->setExport(std::move(chartExport));
    connect(chart, &LineChart::readoutChanged, panel, &ChartPanel::setReadout);
    chart->setToolTip({});
    chart->setWhatsThis(tr("Drag over steps to zoom, double-click or press 0 for all of them, "
                           "Ctrl+wheel or + and - to zoom, arrow keys to move the cursor, L for a "
                           "log axis."));
    link(chart);
    m_charts.push_back(chart);
    return chart;
}

void RunView::addSeries(
    LineChart* chart, const QString& name, const QString& column, int color, const QString& unit)
{
    chart->addSeries({name, column, LineChart::Style::Line,
        [color](const QPalette& palette) {
            return themeColors(palette).series[static_cast<std::size_t>(color)];
        },
        [unit](double value) {
            return unit.isEmpty() ? compactText(value) : compactText(value) + QChar(0xa0) + unit;
        }});
}

void RunView::link(LineChart* chart)
{
    connect(chart, &LineChart::rangePicked, this, &RunView::pickRange);
    connect(chart, &LineChart::allPicked, this, &RunView::pickAll);
    connect(chart, &LineChart::cursorMoved, this, &RunView::setCursor);
}

void RunView::makeLoss()
{
    m_loss = addLineChart(tr("Loss (nats per token)"), QStringLiteral("loss"), m_lossPanel);
    const auto faint = [](const QPalette& palette) {
        QColor color = themeColors(palette).series[0];
        const QColor card = themeColors(palette).card;
        constexpr float kShare = 0.42F;
        return QColor::fromRgbF(color.redF() * kShare + card.redF() * (1.0F - kShare),
            color.greenF() * kShare + card.greenF() * (1.0F - kShare),
            color.blueF() * kShare + card.blueF() * (1.0F - kShare));
    };
    const auto strong = [](const QPalette& palette) { return themeColors(palette).series[0]; };
    const auto evaluated = [](const QPalette& palette) { return themeColors(palette).series[1]; };
    const auto text = [](double value) { return numberText(value, 4); };
    m_loss->addSeries(
        {tr("each step"), QStringLiteral("loss"), LineChart::Style::Faint, faint, text});
    m_loss->addSeries(
        {tr("smoothed"), QStringLiteral("loss_ema"), LineChart::Style::Line, strong, text});
    m_loss->addSeries({tr("evaluation"), QStringLiteral("eval_loss"), LineChart::Style::Markers,
        evaluated, text});
    m_lossPanel->legend()->setEntries({
        {tr("each step"), tr("The loss of each step."), Legend::Mark::Line, faint},
        {tr("smoothed"), tr("Debiased exponential average over all steps; the past never changes."),
            Legend::Mark::Line, strong},
        {tr("evaluation"), tr("The loss on held-out data."), Legend::Mark::Dot, evaluated},
    });

    m_window = new QSpinBox;
    m_window->setRange(1, kMaxWindow);
    m_window->setValue(static_cast<int>(kWindow));
    m_window->setKeyboardTracking(false);
    m_window->setPrefix(tr("Smooth: "));
    m_window->setSuffix(tr(" steps"));
    m_window->setAccessibleName(tr("Steps the smoothed loss averages over"));
    m_window->setToolTip(tr("Steps the smoothed loss averages over; 1 is no smoothing"));
    connect(m_window, &QSpinBox::valueChanged, this, &RunView::resmooth);
    m_log = new QCheckBox(tr("Log"));
    m_log->setToolTip(tr("Log axis (L)"));
    m_log->setAccessibleName(tr("Log axis for the loss"));
    connect(m_log, &QCheckBox::toggled, m_loss, &LineChart::setLogScale);
    connect(m_loss, &LineChart::logScaleChanged, m_log, &QCheckBox::setChecked);
    m_showAll = new QPushButton(tr("Show all steps"));
    m_showAll->hide();
    connect(m_showAll, &QPushButton::clicked, this, &RunView::pickAll);
    m_lossPanel->addTool(m_showAll);
    m_lossPanel->addTool(m_window);
    m_lossPanel->addTool(m_log);
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
    connect(table, &QPushButton::clicked, this, &RunView::showStepTable);
    m_stripPanel->addTool(table);
}

void RunView::makeLedger()
{
    m_ledger = new StallLedgerModel(this);
    m_ledgerTable = new QTableView;
    m_ledgerTable->setModel(m_ledger);
    makePlain(m_ledgerTable);
    m_ledgerTable->setAccessibleName(tr("Where the time went"));
    m_ledgerTable->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_ledgerTable->horizontalHeader()->setSectionResizeMode(
        StallLedgerModel::Part, QHeaderView::Stretch);
    const int rowHeight = m_ledgerTable->verticalHeader()->defaultSectionSize();
    m_ledgerTable->setMinimumHeight(rowHeight * (m_ledger->rowCount() + 1) + 6);
    m_ledgerPanel = new ChartPanel(tr("Where the time went"), m_ledgerTable);
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

// Not modal: it fills while the run goes on.
void RunView::showStepTable()
{
    auto* window = new QDialog(this);
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->setWindowTitle(tr("Steps of %1").arg(QString::fromStdString(m_snapshot->run.name)));
    auto* table = new QTableView;
    table->setModel(m_steps);
    table->setAccessibleName(tr("Steps"));
    table->setAlternatingRowColors(true);
    table->setShowGrid(false);
    table->setTabKeyNavigation(false);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->verticalHeader()->hide();
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
    for (int column = 0; column < StepTableModel::ColumnCount; ++column) {
        const QString title =
            m_steps->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
        table->setColumnWidth(
            column, std::max(fontMetrics().horizontalAdvance(title), kLeastColumn) + kColumnRoom);
    }
    auto* copy = new QAction(tr("Copy"), table);
    copy->setShortcut(QKeySequence::Copy);
    copy->setShortcutContext(Qt::WidgetShortcut);
    connect(copy, &QAction::triggered, table, [table] {
        QApplication::clipboard()->setText(
            tableText(*table->model(), table->selectionModel()->selectedRows(), QLatin1Char('\t')));
    });
    table->addAction(copy);
    table->setContextMenuPolicy(Qt::ActionsContextMenu);
    auto* layout = new QVBoxLayout(window);
    layout->addWidget(table);
    window->resize(kTableSize);
    window->show();
    table->setFocus();
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

void RunView::makeTraffic()
{
    m_traffic = addLineChart(tr("Link traffic (GB/s)"), QStringLiteral("traffic"), m_trafficPanel);
    m_traffic->setZeroBased(true);
    addSeries(m_traffic, tr("to the device"), QStringLiteral("h2d_gb_per_s"), 0, tr("GB/s"));
    addSeries(m_traffic, tr("to the host"), QStringLiteral("d2h_gb_per_s"), 1, tr("GB/s"));
    const auto color = [](std::size_t i) {
        return [i](const QPalette& palette) { return themeColors(palette).series[i]; };
    };
    m_trafficPanel->legend()->setEntries({
        {tr("to the device"), tr("Bytes uploaded in a step over its time."), Legend::Mark::Line,
            color(0)},
        {tr("to the host"), tr("Bytes downloaded in a step over its time."), Legend::Mark::Line,
            color(1)},
    });
}

void RunView::makeSpeed()
{
    m_speed = addLineChart(tr("Speed (tokens/s)"), QStringLiteral("speed"), m_speedPanel);
    m_speed->setZeroBased(true);
    m_speed->addSeries({tr("now"), QStringLiteral("tokens_per_s"), LineChart::Style::Line,
        [](const QPalette& palette) { return themeColors(palette).series[2]; },
        [](double value) { return tr("%1 tokens/s").arg(numberText(value, 0)); }});
}

void RunView::makeOptimizer()
{
    m_rate = addLineChart(tr("Learning rate"), QStringLiteral("learning-rate"), m_ratePanel);
    m_rate->setZeroBased(true);
    addSeries(m_rate, tr("now"), QStringLiteral("learning_rate"), 3, {});
    m_norm = addLineChart(
        tr("Gradient norm (before clipping)"), QStringLiteral("gradient-norm"), m_normPanel);
    m_norm->setZeroBased(true);
    addSeries(m_norm, tr("now"), QStringLiteral("grad_norm"), 4, {});
}

void RunView::makeLog()
{
    m_events = new EventTableModel(this);
    m_eventTable = new QTableView;
    m_eventTable->setModel(m_events);
    makePlain(m_eventTable);
    m_eventTable->setAccessibleName(tr("Log of the run"));
    QHeaderView* header = m_eventTable->horizontalHeader();
    header->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    header->setSectionResizeMode(QHeaderView::ResizeToContents);
    header->setSectionResizeMode(EventTableModel::Text, QHeaderView::Stretch);
    m_logPanel = new ChartPanel(tr("Log"), m_eventTable);
}

void RunView::arrange(int columns)
{
    if (columns == m_columns)
        return;
    m_columns = columns;
    struct Place {
        ChartPanel* panel;
        bool wide;
    };
    const Place places[] = {{m_lossPanel, false}, {m_ledgerPanel, false}, {m_stripPanel, true},
        {m_trafficPanel, false}, {m_memoryPanel, false}, {m_speedPanel, false},
        {m_ratePanel, false}, {m_normPanel, false}, {m_logPanel, false}};
    int row = 0;
    int column = 0;
    for (const Place& place : places) {
        m_grid->removeWidget(place.panel);
        const int span = place.wide ? columns : 1;
        m_grid->addWidget(place.panel, row, column, 1, span);
        column += span;
        if (column >= columns) {
            column = 0;
            ++row;
        }
    }
    // The loss is what is looked at most.
    m_grid->setColumnStretch(0, columns == 2 ? 3 : 1);
    m_grid->setColumnStretch(1, columns == 2 ? 2 : 0);
}

void RunView::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    arrange(event->size().width() >= kTwoColumnsFrom ? 2 : 1);
}

void RunView::startOver()
{
    for (LineChart* chart : m_charts)
        chart->clearPoints();
    m_events->clear();
    m_stepsShown = 0;
    m_ema = Ema(m_window->value());
    m_all = true;
}

void RunView::setSnapshot(const RunSnapshotPtr& snapshot)
{
    if (!m_snapshot || m_snapshot->generation != snapshot->generation ||
        m_snapshot->run.id != snapshot->run.id || snapshot->steps.size() < m_stepsShown)
        startOver();
    m_snapshot = snapshot;
    m_header->setSnapshot(snapshot);
    m_steps->setSteps(snapshot->steps, m_stepsShown > 0);
    appendSteps(m_stepsShown);
    m_stepsShown = snapshot->steps.size();
    Column evaluated;
    for (const ScalarRow& row : snapshot->evalLoss) {
        evaluated.x.push_back(static_cast<double>(row.step));
        evaluated.y.push_back(row.value);
    }
    m_loss->replace(Evaluated, std::move(evaluated));
    m_strip->setSteps(snapshot->steps);
    const double planned = snapshot->plan ? snapshot->plan->predictedStepMs : 0.0;
    m_strip->setPlannedStepMs(planned);
    if (m_forecastShown != (planned > 0.0))
        showStripLegend(planned > 0.0);
    m_memory->setMemory(snapshot->plan, snapshot->run.devicePeakBytes, snapshot->run.hostPeakBytes);

    const QScrollBar* bar = m_eventTable->verticalScrollBar();
    const bool atEnd = bar->value() == bar->maximum();
    m_events->append(snapshot->events);
    if (atEnd)
        m_eventTable->scrollToBottom();
    showRange();
}

void RunView::appendSteps(std::size_t first)
{
    const StepSeries& steps = m_snapshot->steps;
    Column loss;
    std::vector<double> smoothed;
    std::vector<double> up;
    std::vector<double> down;
    std::vector<double> speed;
    std::vector<double> rate;
    std::vector<double> norm;
    for (std::size_t i = first; i < steps.size(); ++i) {
        const StepRow& row = steps[i];
        loss.x.push_back(static_cast<double>(row.step));
        loss.y.push_back(row.loss);
        smoothed.push_back(m_ema.push(row.loss));
        up.push_back(perSecond(row.h2dBytes, row.wallUs) / kGiga);
        down.push_back(perSecond(row.d2hBytes, row.wallUs) / kGiga);
        speed.push_back(perSecond(row.tokens, row.wallUs));
        rate.push_back(row.learningRate);
        norm.push_back(row.gradNorm);
    }
    m_loss->append(Raw, loss.x, loss.y);
    m_loss->append(Smoothed, loss.x, smoothed);
    m_traffic->append(Up, loss.x, up);
    m_traffic->append(Down, loss.x, down);
    m_speed->append(0, loss.x, speed);
    m_rate->append(0, loss.x, rate);
    m_norm->append(0, loss.x, norm);
}

void RunView::resmooth()
{
    m_ema = Ema(m_window->value());
    if (!m_snapshot)
        return;
    Column smoothed;
    for (std::size_t i = 0; i < m_stepsShown; ++i) {
        smoothed.x.push_back(static_cast<double>(m_snapshot->steps[i].step));
        smoothed.y.push_back(m_ema.push(m_snapshot->steps[i].loss));
    }
    m_loss->replace(Smoothed, std::move(smoothed));
    m_loss->refresh();
}

void RunView::showRange()
{
    if (m_all) {
        const StepSeries& steps = m_snapshot->steps;
        double first = steps.empty() ? 1.0 : static_cast<double>(steps[0].step);
        double last = steps.empty() ? 1.0 : static_cast<double>(steps.back().step);
        if (!m_snapshot->evalLoss.empty()) {
            first = std::min(first, static_cast<double>(m_snapshot->evalLoss.front().step));
            last = std::max(last, static_cast<double>(m_snapshot->evalLoss.back().step));
        }
        // Half a step for the bars, and room for the markers at both ends.
        const double room = std::max(0.5, kEndRoom * (last - first));
        m_lower = first - room;
        m_upper = std::max(last + room, m_lower + kFewestSteps);
    }
    m_showAll->setVisible(!m_all);
    for (LineChart* chart : m_charts)
        chart->setRange(m_lower, m_upper);
    m_strip->setRange(m_lower, m_upper);
    showLedger();
}

void RunView::pickRange(double lower, double upper)
{
    if (!m_snapshot || m_snapshot->steps.empty())
        return;
    const double first = static_cast<double>(m_snapshot->steps[0].step) - 0.5;
    const double last = static_cast<double>(m_snapshot->steps.back().step) + 0.5;
    m_lower = std::max(lower, first);
    m_upper = std::min(upper, last);
    // A range that lies outside of the steps is no range.
    m_all = (m_lower <= first && m_upper >= last) || m_upper - m_lower < 1.0;
    showRange();
}

void RunView::pickAll()
{
    m_all = true;
    if (m_snapshot)
        showRange();
}

void RunView::setCursor(double step)
{
    for (LineChart* chart : m_charts)
        chart->setCursor(step);
    m_strip->setCursor(step);
}

void RunView::showLedger()
{
    const LedgerTotals totals = ledgerTotals(m_snapshot->steps, m_lower, m_upper);
    m_ledger->setTotals(totals);
    m_ledgerPanel->setReadout(totals.steps == 0 ? QString()
                              : m_all           ? tr("all %1 steps").arg(countText(totals.steps))
                                                : tr("steps %1 to %2")
                                            .arg(countText(std::llround(std::ceil(m_lower))),
                                                countText(std::llround(std::floor(m_upper)))));
}

} // namespace mr::ui
