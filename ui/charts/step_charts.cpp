#include "charts/step_charts.h"

#include "charts/chart_panel.h"
#include "charts/legend.h"
#include "charts/line_chart.h"
#include "charts/line_panel.h"
#include "text/units.h"

#include <limits>
#include <vector>

namespace mr::ui {

namespace {

constexpr double kGiga = 1e9;

enum TrafficSeries { Up, Down };
enum DiskSeries { Read, Written };

double perSecond(std::int64_t amount, std::int64_t us)
{
    return us > 0 ? static_cast<double>(amount) / static_cast<double>(us) * 1e6
                  : std::numeric_limits<double>::quiet_NaN();
}

// Small rates have a small unit: 6.9 KB/s.
QString trafficText(double gigabytesPerSecond)
{
    return linkText(gigabytesPerSecond * kGiga);
}

} // namespace

StepCharts::StepCharts(QObject* parent)
    : QObject(parent)
{
    add(Traffic, tr("Link traffic (GB/s)"), QStringLiteral("traffic"));
    addSeries(Traffic, tr("to the device"), QStringLiteral("h2d_gb_per_s"), 0, trafficText);
    addSeries(Traffic, tr("to the host"), QStringLiteral("d2h_gb_per_s"), 1, trafficText);
    m_panels[Traffic]->legend()->setEntries({
        {tr("to the device"), tr("Bytes uploaded in a step over its time."), Legend::Mark::Line,
            seriesColor(0)},
        {tr("to the host"), tr("Bytes downloaded in a step over its time."), Legend::Mark::Line,
            seriesColor(1)},
    });
    add(DiskTraffic, tr("Disk traffic (GB/s)"), QStringLiteral("disk-traffic"));
    addSeries(DiskTraffic, tr("read"), QStringLiteral("disk_read_gb_per_s"), 7, trafficText);
    addSeries(DiskTraffic, tr("written"), QStringLiteral("disk_write_gb_per_s"), 6, trafficText);
    m_panels[DiskTraffic]->legend()->setEntries({
        {tr("read"), tr("Bytes read from the disk in a step over its time."), Legend::Mark::Line,
            seriesColor(7)},
        {tr("written"), tr("Bytes written to the disk in a step over its time."),
            Legend::Mark::Line, seriesColor(6)},
    });
    add(Speed, tr("Speed (tokens/s)"), QStringLiteral("speed"));
    m_charts[Speed]->addSeries({tr("now"), QStringLiteral("tokens_per_s"), LineChart::Style::Line,
        seriesColor(2), [](double value) { return tr("%1 tokens/s").arg(numberText(value, 0)); }});
    add(LearningRate, tr("Learning rate"), QStringLiteral("learning-rate"));
    addSeries(LearningRate, tr("now"), QStringLiteral("learning_rate"), 3, compactText);
    add(GradientNorm, tr("Gradient norm (before clipping)"), QStringLiteral("gradient-norm"));
    addSeries(GradientNorm, tr("now"), QStringLiteral("grad_norm"), 4, compactText);
}

void StepCharts::add(Chart chart, const QString& title, const QString& fileName)
{
    m_charts[chart] = new LineChart(title);
    m_charts[chart]->setZeroBased(true);
    m_panels[chart] = new ChartPanel(title, m_charts[chart]);
    m_panels[chart]->setObjectName(fileName);
    dressLinePanel(*m_panels[chart], *m_charts[chart], fileName);
}

void StepCharts::addSeries(Chart chart, const QString& name, const QString& column,
    std::size_t color, QString (*text)(double))
{
    m_charts[chart]->addSeries({name, column, LineChart::Style::Line, seriesColor(color), text});
}

void StepCharts::append(const StepSeries& steps, std::size_t first)
{
    std::vector<double> x;
    std::vector<double> up;
    std::vector<double> down;
    std::vector<double> read;
    std::vector<double> written;
    std::vector<double> speed;
    std::vector<double> rate;
    std::vector<double> norm;
    m_usesDisk = m_usesDisk && first > 0; // another run begins at 0
    for (std::size_t i = first; i < steps.size(); ++i) {
        const StepRow& row = steps[i];
        x.push_back(static_cast<double>(row.step));
        up.push_back(perSecond(row.h2dBytes, row.wallUs) / kGiga);
        down.push_back(perSecond(row.d2hBytes, row.wallUs) / kGiga);
        read.push_back(perSecond(row.diskReadBytes, row.wallUs) / kGiga);
        written.push_back(perSecond(row.diskWriteBytes, row.wallUs) / kGiga);
        m_usesDisk = m_usesDisk || row.diskReadBytes > 0 || row.diskWriteBytes > 0;
        speed.push_back(perSecond(row.tokens, row.wallUs));
        rate.push_back(row.learningRate);
        norm.push_back(row.gradNorm);
    }
    m_charts[Traffic]->append(Up, x, up);
    m_charts[Traffic]->append(Down, x, down);
    m_charts[DiskTraffic]->append(Read, x, read);
    m_charts[DiskTraffic]->append(Written, x, written);
    m_charts[Speed]->append(0, x, speed);
    m_charts[LearningRate]->append(0, x, rate);
    m_charts[GradientNorm]->append(0, x, norm);
}

} // namespace mr::ui
