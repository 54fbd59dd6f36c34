#include "charts/loss_panel.h"

#include "charts/legend.h"
#include "charts/line_chart.h"
#include "charts/line_panel.h"
#include "text/theme_colors.h"
#include "text/units.h"

#include <QCheckBox>
#include <QSpinBox>

namespace mr::ui {

namespace {

constexpr double kWindow = 25.0; // steps, of the smoothed loss
constexpr int kMaxWindow = 10000;

enum Series { Raw, Smoothed, Evaluated };

// The first series colour, mixed with card colour: the smoothed line stands out, and each step can
// still be seen.
QColor faint(const QPalette& palette)
{
    const QColor color = themeColors(palette).series[0];
    const QColor card = themeColors(palette).card;
    constexpr float kShare = 0.7F;
    return QColor::fromRgbF(color.redF() * kShare + card.redF() * (1.0F - kShare),
        color.greenF() * kShare + card.greenF() * (1.0F - kShare),
        color.blueF() * kShare + card.blueF() * (1.0F - kShare));
}

} // namespace

LossPanel::LossPanel(QWidget* parent)
    : LossPanel(new LineChart(tr("Loss (nats per token)")), parent)
{
}

LossPanel::LossPanel(LineChart* chart, QWidget* parent)
    : ChartPanel(chart->accessibleName(), chart, parent)
    , m_chart(chart)
    , m_window(new QSpinBox)
    , m_log(new QCheckBox(tr("Log")))
    , m_ema(kWindow)
{
    dressLinePanel(*this, *chart, QStringLiteral("loss"));
    makeSeries();
    makeTools();
}

void LossPanel::makeSeries()
{
    const auto text = [](double value) { return numberText(value, 4); };
    m_chart->addSeries(
        {tr("each step"), QStringLiteral("loss"), LineChart::Style::Faint, faint, text});
    m_chart->addSeries(
        {tr("smoothed"), QStringLiteral("loss_ema"), LineChart::Style::Line, seriesColor(0), text});
    m_chart->addSeries({tr("evaluation"), QStringLiteral("eval_loss"), LineChart::Style::Markers,
        seriesColor(1), text});
    legend()->setEntries({
        {tr("each step"), tr("The loss of each step."), Legend::Mark::Line, faint},
        {tr("smoothed"), tr("Debiased exponential average over all steps; the past never changes."),
            Legend::Mark::Line, seriesColor(0)},
        {tr("evaluation"), tr("The loss on held-out data."), Legend::Mark::Dot, seriesColor(1)},
    });
}

void LossPanel::makeTools()
{
    m_window->setRange(1, kMaxWindow);
    m_window->setValue(static_cast<int>(kWindow));
    m_window->setKeyboardTracking(false);
    m_window->setPrefix(tr("Smooth: "));
    m_window->setSuffix(tr(" steps"));
    m_window->setAccessibleName(tr("Steps the smoothed loss averages over"));
    m_window->setToolTip(tr("Steps the smoothed loss averages over; 1 is no smoothing"));
    connect(m_window, &QSpinBox::valueChanged, this, &LossPanel::resmooth);
    m_log->setToolTip(tr("Log axis (L)"));
    m_log->setAccessibleName(tr("Log axis for the loss"));
    connect(m_log, &QCheckBox::toggled, m_chart, &LineChart::setLogScale);
    connect(m_chart, &LineChart::logScaleChanged, m_log, &QCheckBox::setChecked);
    addTool(m_window);
    addTool(m_log);
}

void LossPanel::clear()
{
    m_chart->clearPoints();
    m_steps = {};
    m_ema = Ema(m_window->value());
}

void LossPanel::append(const StepSeries& steps, std::size_t first)
{
    m_steps = steps;
    Column loss;
    std::vector<double> smoothed;
    for (std::size_t i = first; i < steps.size(); ++i) {
        loss.x.push_back(static_cast<double>(steps[i].step));
        loss.y.push_back(steps[i].loss);
        smoothed.push_back(m_ema.push(steps[i].loss));
    }
    m_chart->append(Raw, loss.x, loss.y);
    m_chart->append(Smoothed, loss.x, smoothed);
}

void LossPanel::setEvaluations(const std::vector<ScalarRow>& rows)
{
    Column evaluated;
    for (const ScalarRow& row : rows) {
        evaluated.x.push_back(static_cast<double>(row.step));
        evaluated.y.push_back(row.value);
    }
    m_chart->replace(Evaluated, std::move(evaluated));
}

void LossPanel::resmooth()
{
    m_ema = Ema(m_window->value());
    Column smoothed;
    for (std::size_t i = 0; i < m_steps.size(); ++i) {
        smoothed.x.push_back(static_cast<double>(m_steps[i].step));
        smoothed.y.push_back(m_ema.push(m_steps[i].loss));
    }
    m_chart->replace(Smoothed, std::move(smoothed));
    m_chart->refresh();
}

} // namespace mr::ui
