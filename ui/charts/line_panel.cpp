#include "charts/line_panel.h"

#include "charts/chart_panel.h"
#include "charts/line_chart.h"
#include "text/theme_colors.h"

#include <QCoreApplication>

namespace mr::ui {

namespace {

struct PanelWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::LinePanel)
};

} // namespace

void dressLinePanel(ChartPanel& panel, LineChart& chart, const QString& fileName)
{
    ChartExport chartExport;
    chartExport.baseName = fileName;
    chartExport.csv = [&chart] { return chart.csv(); };
    panel.setExport(std::move(chartExport));
    QObject::connect(&chart, &LineChart::readoutChanged, &panel, &ChartPanel::setReadout);
    chart.setToolTip({});
    chart.setWhatsThis(
        PanelWords::tr("Drag to zoom, double-click or press 0 for the whole run, "
                       "Ctrl+wheel or + and - to zoom, arrow keys to move the cursor, L "
                       "for a log axis."));
}

std::function<QColor(const QPalette&)> seriesColor(std::size_t number)
{
    return [number](const QPalette& palette) { return themeColors(palette).series[number]; };
}

} // namespace mr::ui
