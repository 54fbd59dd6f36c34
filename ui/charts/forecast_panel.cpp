#include "charts/forecast_panel.h"

#include "charts/share_bar_delegate.h"
#include "models/forecast_model.h"
#include "text/cause_colors.h"
#include "text/units.h"

#include <QHeaderView>
#include <QTableView>

namespace mr::ui {

namespace {

constexpr int kLeastPicture = 60;

} // namespace

ForecastPanel::ForecastPanel(QWidget* parent)
    : ForecastPanel(new QTableView, parent)
{
}

ForecastPanel::ForecastPanel(QTableView* table, QWidget* parent)
    : ChartPanel(tr("Forecast and truth"), table, parent)
    , m_table(table)
    , m_model(new ForecastModel(this))
{
    setUpTable();
    ChartExport forecast;
    forecast.baseName = QStringLiteral("forecast");
    forecast.csv = [this] { return m_model->csv(); };
    setExport(std::move(forecast));
    fitTable();
}

void ForecastPanel::setUpTable()
{
    m_table->setModel(m_model);
    m_table->setItemDelegate(new ShareBarDelegate(
        ShareBarDelegate::Style::BarOnly,
        [](const QPalette& palette, int part) {
            return partColor(palette, static_cast<std::size_t>(part));
        },
        m_table));
    m_table->setAccessibleName(tr("Forecast and measured time of a step"));
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->viewport()->setAutoFillBackground(false); // the card shows through
    m_table->setShowGrid(false);
    m_table->setWordWrap(false);
    m_table->setSelectionMode(QAbstractItemView::NoSelection);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setTabKeyNavigation(false);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + 6);
    QHeaderView* header = m_table->horizontalHeader();
    header->setHighlightSections(false);
    header->setMinimumSectionSize(kLeastPicture);
    header->setSectionResizeMode(QHeaderView::ResizeToContents);
    header->setSectionResizeMode(ForecastModel::Picture, QHeaderView::Stretch);
}

void ForecastPanel::fitTable()
{
    const bool known = m_model->hasForecast();
    for (int column = ForecastModel::FirstPart; column < ForecastModel::ColumnCount; ++column)
        m_table->setColumnHidden(column, m_model->isEmpty(column));
    m_table->setRowHidden(ForecastModel::Difference, !known);
    const int rows = known ? ForecastModel::RowCount : ForecastModel::RowCount - 1;
    m_table->setFixedHeight(m_table->horizontalHeader()->sizeHint().height() +
                            rows * m_table->verticalHeader()->defaultSectionSize() + 4);
}

void ForecastPanel::setRun(const RunSnapshot& run, double lower, double upper)
{
    std::int64_t count = 0;
    const StepTimesMs measured = medianTimes(run.steps, lower, upper, count);
    m_model->setTimes(forecastTimes(run.plan.get()), measured);
    fitTable();
    QString words = tr("median of %n step(s)", "", static_cast<int>(count));
    if (!m_model->hasForecast())
        words += tr(" · no rates of this machine were known when the run was planned");
    else if (run.plan->simulatedLink)
        words += tr(" · simulated link");
    setReadout(words);
}

} // namespace mr::ui
