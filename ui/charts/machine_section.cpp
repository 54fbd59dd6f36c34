#include "charts/machine_section.h"

#include "charts/chart_panel.h"
#include "charts/legend.h"
#include "charts/line_chart.h"
#include "charts/line_panel.h"
#include "text/units.h"
#include "widgets/card.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace mr::ui {

namespace {

constexpr int kSpacing = 10;
constexpr int kThreeColumnsFrom = 860; // logical pixels
constexpr int kTwoColumnsFrom = 560;
constexpr double kMillisecond = 1e-3;

// Points of the entries from `first` on. An entry of several samples becomes two points, its lowest
// and its highest: a peak of one second survives.
Column pointsOf(const CounterSeries& series, std::size_t first, double perUnit)
{
    Column points;
    const double half = static_cast<double>(series.periodMs) * kMillisecond / 2.0;
    const bool isCoarse = series.periodMs > kMachinePeriodMs;
    for (std::size_t i = first; i < series.entries.size(); ++i) {
        const CounterEntry& entry = series.entries[i];
        const double x = static_cast<double>(entry.timeMs) * kMillisecond;
        points.x.push_back(x);
        points.y.push_back(static_cast<double>(isCoarse ? entry.min : entry.mean) / perUnit);
        if (!isCoarse)
            continue;
        points.x.push_back(x + half);
        points.y.push_back(static_cast<double>(entry.max) / perUnit);
    }
    return points;
}

bool isMeasured(const CounterSeries& series)
{
    return std::any_of(series.entries.begin(), series.entries.end(),
        [](const CounterEntry& entry) { return !std::isnan(entry.mean); });
}

int columnsFor(int width, int charts)
{
    if (charts < 2 || width < kTwoColumnsFrom)
        return 1;
    return charts == 2 || charts == 4 || width < kThreeColumnsFrom ? 2 : 3;
}

} // namespace

MachineSection::MachineSection(QWidget* parent)
    : QWidget(parent)
    , m_energy(makeMutedLabel())
    , m_grid(new QGridLayout)
{
    auto* title = new QLabel(tr("Machine"));
    QFont large = title->font();
    large.setBold(true);
    large.setPointSizeF(large.pointSizeF() * 1.1);
    title->setFont(large);
    m_energy->setWordWrap(false);
    m_energy->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    auto* head = new QHBoxLayout;
    head->addWidget(title);
    head->addWidget(m_energy, 1);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(4);
    layout->addLayout(head);
    m_grid->setSpacing(kSpacing);
    layout->addLayout(m_grid);
    for (MachineChart& chart : MachineWords::charts())
        add(std::move(chart));
    hide();
}

void MachineSection::add(MachineChart words)
{
    Small small;
    small.chart = new LineChart(words.title);
    small.chart->setXAxis({XAxis::Kind::Time, 1.0});
    small.chart->setZeroBased(true);
    small.chart->setLeastTop(words.leastTop);
    small.chart->setCompact();
    small.panel = new ChartPanel(words.title, small.chart, this);
    small.panel->hide();
    dressLinePanel(*small.panel, *small.chart, words.fileName);
    connect(small.chart, &LineChart::rangePicked, this, &MachineSection::rangePicked);
    connect(small.chart, &LineChart::allPicked, this, &MachineSection::allPicked);
    connect(small.chart, &LineChart::cursorMoved, this, &MachineSection::cursorMoved);
    for (const MachineLine& line : words.lines)
        small.lines.push_back({line, -1, 0});
    small.words = std::move(words);
    m_smalls.push_back(std::move(small));
}

void MachineSection::setHistory(const MachineHistoryPtr& history, double energyJ)
{
    m_energy->setText(
        std::isnan(energyJ) ? QString() : tr("Energy of the device: %1").arg(energyText(energyJ)));
    if (history == m_history)
        return;
    m_history = history;
    if (!history) {
        clear();
        return;
    }
    for (Small& small : m_smalls)
        showLines(small);
    arrange();
    setVisible(!shownCharts().empty());
}

void MachineSection::clear()
{
    m_history = nullptr;
    for (Small& small : m_smalls) {
        small.chart->clearPoints();
        for (Line& line : small.lines)
            line.entries = 0;
        small.inLegend = 0;
        small.panel->hide();
    }
    hide();
}

// A series that is measured for the first time comes into the chart and its legend then.
void MachineSection::showLines(Small& small)
{
    std::size_t shown = 0;
    for (Line& line : small.lines) {
        const CounterSeries& series = (*m_history)[line.words.metric];
        if (line.series < 0 && isMeasured(series)) {
            line.series = small.chart->addSeries({line.words.name, line.words.column,
                LineChart::Style::Line, seriesColor(line.words.color), small.words.text});
        }
        if (line.series >= 0)
            fill(small, line);
        shown += line.entries > 0 ? 1 : 0;
    }
    if (shown != small.inLegend)
        showLegend(small);
    small.inLegend = shown;
    small.panel->setVisible(shown > 0);
}

void MachineSection::fill(Small& small, Line& line)
{
    const CounterSeries& series = (*m_history)[line.words.metric];
    const double grid = static_cast<double>(series.periodMs) * kMillisecond;
    // Samples at their own period never change; the last entry of a coarser level still does.
    const bool grows = series.periodMs == kMachinePeriodMs && small.chart->xAxis().grid == grid &&
                       series.entries.size() >= line.entries;
    if (grows) {
        const Column more = pointsOf(series, line.entries, small.words.perUnit);
        small.chart->append(line.series, more.x, more.y);
    } else {
        small.chart->setXAxis({XAxis::Kind::Time, grid});
        small.chart->replace(line.series, pointsOf(series, 0, small.words.perUnit));
    }
    line.entries = series.entries.size();
}

void MachineSection::showLegend(const Small& small)
{
    std::vector<Legend::Entry> entries;
    for (const Line& line : small.lines) {
        if (line.entries > 0)
            entries.push_back({line.words.name, line.words.explanation, Legend::Mark::Line,
                seriesColor(line.words.color)});
    }
    small.panel->legend()->setEntries(std::move(entries));
}

std::vector<LineChart*> MachineSection::shownCharts() const
{
    std::vector<LineChart*> charts;
    for (const Small& small : m_smalls) {
        if (!small.panel->isHidden())
            charts.push_back(small.chart);
    }
    return charts;
}

void MachineSection::arrange()
{
    const int count = static_cast<int>(shownCharts().size());
    const int columns = columnsFor(width(), count);
    int place = 0;
    for (const Small& small : m_smalls) {
        m_grid->removeWidget(small.panel);
        if (small.panel->isHidden())
            continue;
        m_grid->addWidget(small.panel, place / columns, place % columns);
        ++place;
    }
    for (int column = 0; column < std::max(columns, m_columns); ++column)
        m_grid->setColumnStretch(column, column < columns ? 1 : 0);
    m_columns = columns;
}

void MachineSection::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    if (columnsFor(width(), static_cast<int>(shownCharts().size())) != m_columns)
        arrange();
}

void MachineSection::setRange(double lower, double upper)
{
    for (const Small& small : m_smalls)
        small.chart->setRange(lower, upper);
}

void MachineSection::setCursor(double seconds)
{
    for (const Small& small : m_smalls)
        small.chart->setCursor(seconds);
}

} // namespace mr::ui
