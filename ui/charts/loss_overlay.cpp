#include "charts/loss_overlay.h"

#include "charts/legend.h"
#include "charts/line_chart.h"
#include "charts/line_panel.h"
#include "math/series_math.h"
#include "models/run_figures.h"
#include "text/theme_colors.h"
#include "text/units.h"

#include <QCheckBox>
#include <QComboBox>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kRuns = 2;
constexpr double kLeastSeconds = 10.0;
constexpr double kEndRoom = 0.008; // share of the range, for the markers at both ends

// Series of the chart: both lines, then both rows of markers.
int smoothed(int run)
{
    return run;
}

int evaluated(int run)
{
    return kRuns + run;
}

// Place of a step or an evaluation on the horizontal axis.
template <typename Row>
double placeOf(const Row& row, bool overTime)
{
    return overTime ? static_cast<double>(row.timeMs) / 1e3 : static_cast<double>(row.step);
}

} // namespace

LossOverlay::LossOverlay(QWidget* parent)
    : LossOverlay(new LineChart(tr("Loss (nats per token)")), parent)
{
}

LossOverlay::LossOverlay(LineChart* chart, QWidget* parent)
    : ChartPanel(chart->accessibleName(), chart, parent)
    , m_chart(chart)
{
    dressLinePanel(*this, *chart, QStringLiteral("losses"));
    makeSeries();
    makeTools();
    connect(m_chart, &LineChart::rangePicked, this, [this](double lower, double upper) {
        if (overTime())
            m_seconds = RunRange::Ends{lower, upper};
        else if (const RunSnapshot* run = longer())
            m_range.pickSteps(run->steps, {lower, upper});
        showRange();
    });
    connect(m_chart, &LineChart::allPicked, this, [this] {
        m_range.showAll();
        m_seconds.reset();
        showRange();
    });
    connect(m_chart, &LineChart::cursorMoved, m_chart, &LineChart::setCursor);
}

void LossOverlay::makeTools()
{
    m_axis = new QComboBox;
    m_axis->setAccessibleName(tr("Unit of the horizontal axis"));
    m_axis->addItem(tr("Steps"), static_cast<int>(XAxis::Kind::Step));
    m_axis->addItem(tr("Time"), static_cast<int>(XAxis::Kind::Time));
    m_axis->setItemData(1, tr("Active time since each run began, without pauses"), Qt::ToolTipRole);
    connect(m_axis, &QComboBox::currentIndexChanged, this, &LossOverlay::changeAxis);
    auto* log = new QCheckBox(tr("Log"));
    log->setToolTip(tr("Log axis (L)"));
    log->setAccessibleName(tr("Log axis for the loss"));
    connect(log, &QCheckBox::toggled, m_chart, &LineChart::setLogScale);
    connect(m_chart, &LineChart::logScaleChanged, log, &QCheckBox::setChecked);
    addTool(m_axis);
    addTool(log);
}

bool LossOverlay::overTime() const
{
    return m_axis->currentData().toInt() == static_cast<int>(XAxis::Kind::Time);
}

void LossOverlay::changeAxis()
{
    XAxis axis;
    axis.kind = overTime() ? XAxis::Kind::Time : XAxis::Kind::Step;
    m_chart->setXAxis(axis);
    m_seconds.reset();
    m_range.showAll();
    for (int run = 0; run < kRuns; ++run)
        showRun(run);
    showRange();
}

void LossOverlay::makeSeries()
{
    const auto text = [](double value) { return numberText(value, 4); };
    const auto column = [](const char* name, int run) {
        return QStringLiteral("%1_%2").arg(QLatin1String(name)).arg(run + 1);
    };
    for (int run = 0; run < kRuns; ++run)
        m_chart->addSeries({{}, column("loss_ema", run), LineChart::Style::Line,
            seriesColor(static_cast<std::size_t>(run)), text});
    for (int run = 0; run < kRuns; ++run)
        m_chart->addSeries({{}, column("eval_loss", run), LineChart::Style::Markers,
            seriesColor(static_cast<std::size_t>(run)), text});
}

void LossOverlay::showLabels(const std::array<QString, 2>& labels)
{
    if (labels == m_labels)
        return;
    m_labels = labels;
    std::vector<Legend::Entry> entries;
    for (int run = 0; run < kRuns; ++run) {
        const QString& label = labels.at(static_cast<std::size_t>(run));
        m_chart->renameSeries(smoothed(run), label);
        m_chart->renameSeries(evaluated(run), tr("%1, held out").arg(label));
        if (!label.isEmpty())
            entries.push_back(
                {label, tr("Debiased exponential average over %1 steps.").arg(kLossWindow),
                    Legend::Mark::Line, seriesColor(static_cast<std::size_t>(run))});
    }
    entries.push_back({tr("held out"), tr("The loss on held-out data, in the colour of its run."),
        Legend::Mark::Dot, [](const QPalette& palette) { return themeColors(palette).muted; }});
    legend()->setEntries(std::move(entries));
}

void LossOverlay::showRun(int run)
{
    const RunSnapshotPtr& snapshot = m_runs.at(static_cast<std::size_t>(run));
    Column loss;
    Column evaluations;
    if (snapshot) {
        Ema ema(kLossWindow);
        for (std::size_t i = 0; i < snapshot->steps.size(); ++i) {
            loss.x.push_back(placeOf(snapshot->steps[i], overTime()));
            loss.y.push_back(ema.push(snapshot->steps[i].loss));
        }
        for (const ScalarRow& row : snapshot->evalLoss) {
            evaluations.x.push_back(placeOf(row, overTime()));
            evaluations.y.push_back(row.value);
        }
    }
    m_chart->replace(smoothed(run), std::move(loss));
    m_chart->replace(evaluated(run), std::move(evaluations));
}

void LossOverlay::setRuns(
    const std::array<RunSnapshotPtr, 2>& runs, const std::array<QString, 2>& labels)
{
    showLabels(labels);
    for (int run = 0; run < kRuns; ++run) {
        const auto at = static_cast<std::size_t>(run);
        if (m_runs.at(at) == runs.at(at))
            continue;
        m_runs.at(at) = runs.at(at);
        showRun(run);
    }
    showRange();
}

const RunSnapshot* LossOverlay::longer() const
{
    const RunSnapshot* longest = nullptr;
    for (const RunSnapshotPtr& run : m_runs) {
        if (run && !run->steps.empty() &&
            (longest == nullptr || run->steps.back().step > longest->steps.back().step))
            longest = run.get();
    }
    return longest;
}

// The run that took longer may be the one with fewer steps.
RunRange::Ends LossOverlay::wholeTime() const
{
    double last = kLeastSeconds;
    for (const RunSnapshotPtr& run : m_runs) {
        if (run && !run->steps.empty())
            last = std::max(last, placeOf(run->steps.back(), true));
        if (run && !run->evalLoss.empty())
            last = std::max(last, placeOf(run->evalLoss.back(), true));
    }
    return {-kEndRoom * last, last * (1.0 + kEndRoom)};
}

void LossOverlay::showRange()
{
    if (const RunSnapshot* run = longer())
        m_range.follow(run->steps, run->evalLoss);
    const RunRange::Ends shown = overTime() ? m_seconds.value_or(wholeTime()) : m_range.steps();
    m_chart->setRange(shown.lower, shown.upper);
    m_chart->refresh();
}

} // namespace mr::ui
