#include "models/forecast_model.h"

#include "math/share_bar.h"
#include "text/format.h"
#include "text/stall_words.h"
#include "text/units.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace mr::ui {

namespace {

constexpr std::size_t kMostSteps = 10'000; // a median of them takes well below a millisecond

double median(std::vector<std::int64_t>& us)
{
    const auto middle = us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2);
    std::nth_element(us.begin(), middle, us.end());
    const auto upper = static_cast<double>(*middle);
    if (us.size() % 2 == 1)
        return upper / 1000.0;
    const auto lower = static_cast<double>(*std::max_element(us.begin(), middle));
    return (lower + upper) / 2000.0;
}

QString signedTime(double ms)
{
    constexpr double kShown = 0.005; // less is shown as 0.00
    const QString sign = std::abs(ms) < kShown ? QString()
                         : ms < 0.0            ? QStringLiteral("−")
                                               : QStringLiteral("+");
    return sign + Format::milliseconds(std::abs(ms));
}

} // namespace

StepTimesMs medianTimes(const StepSeries& steps, double lower, double upper, std::int64_t& count)
{
    std::size_t first = steps.lowerBound(lower);
    const std::size_t end = steps.lowerBound(std::nextafter(upper, HUGE_VAL));
    first = std::max(first, end > kMostSteps ? end - kMostSteps : 0);
    count = static_cast<std::int64_t>(end > first ? end - first : 0);
    StepTimesMs times;
    if (count == 0)
        return times;
    times.known = true;
    std::vector<std::int64_t> us(end - first);
    const auto collect = [&](auto part) {
        for (std::size_t i = first; i < end; ++i)
            us[i - first] = part(steps[i]);
        return median(us);
    };
    times.step = collect([](const StepRow& row) { return row.wallUs; });
    times.parts[0] = collect([](const StepRow& row) { return row.computeUs; });
    for (std::size_t cause = 0; cause < kStallCauses; ++cause)
        times.parts[1 + cause] =
            collect([cause](const StepRow& row) { return row.stallUs[cause]; });
    return times;
}

StepTimesMs forecastTimes(const PlanReport* plan)
{
    StepTimesMs times;
    if (plan == nullptr || !(plan->predictedStepMs > 0.0))
        return times;
    times.known = true;
    times.step = plan->predictedStepMs;
    times.parts[0] = plan->predictedComputeMs;
    std::copy(
        plan->predictedStallMs.begin(), plan->predictedStallMs.end(), times.parts.begin() + 1);
    return times;
}

int ForecastModel::rows() const
{
    return RowCount;
}

bool ForecastModel::isNumber(int column) const
{
    return column != Name;
}

void ForecastModel::setTimes(const StepTimesMs& forecast, const StepTimesMs& measured)
{
    m_forecast = forecast;
    m_measured = measured;
    emit dataChanged(index(0, 0), index(RowCount - 1, ColumnCount - 1));
}

const StepTimesMs& ForecastModel::times(int row) const
{
    return row == Forecast ? m_forecast : m_measured;
}

double ForecastModel::value(int row, int column) const
{
    if (row == Difference) {
        const double measured = value(Measured, column);
        return measured - value(Forecast, column);
    }
    const StepTimesMs& of = times(row);
    if (!of.known || column == Name || column == Picture)
        return kNone;
    return column == Step ? of.step : of.parts.at(static_cast<std::size_t>(column - FirstPart));
}

bool ForecastModel::isEmpty(int column) const
{
    if (column < FirstPart)
        return false;
    const auto part = static_cast<std::size_t>(column - FirstPart);
    return m_forecast.parts.at(part) == 0.0 && m_measured.parts.at(part) == 0.0;
}

QString ForecastModel::text(int row, int column) const
{
    if (column == Name)
        return row == Forecast   ? tr("Forecast")
               : row == Measured ? tr("Measured (median)")
                                 : tr("Difference");
    const double ms = value(row, column);
    if (column == Picture)
        return {};
    if (std::isnan(ms))
        return row == Forecast && column == Step ? tr("no forecast yet") : QStringLiteral("–");
    if (row != Difference)
        return Format::milliseconds(ms);
    if (column != Step || !(m_forecast.step > 0.0))
        return signedTime(ms);
    const double percent = 100.0 * ms / m_forecast.step;
    return (percent < 0.0 ? QStringLiteral("−") : QStringLiteral("+")) +
           percentText(std::abs(percent));
}

QVariant ForecastModel::share(int row) const
{
    const StepTimesMs& of = times(row);
    if (row == Difference || !of.known)
        return {};
    const auto sum = [](const StepTimesMs& one) {
        return std::accumulate(one.parts.begin(), one.parts.end(), 0.0);
    };
    return QVariant::fromValue(ShareBar{QVector<double>(of.parts.begin(), of.parts.end()),
        std::max(sum(m_forecast), sum(m_measured))});
}

QVariant ForecastModel::cell(int row, int column, int role) const
{
    switch (role) {
    case Qt::DisplayRole:
        return text(row, column);
    case ValueRole: {
        const double ms = value(row, column);
        return std::isnan(ms) ? QVariant() : QVariant(ms);
    }
    case kShareRole:
        return column == Picture ? share(row) : QVariant();
    case Qt::ToolTipRole:
        if (column == Picture && row != Difference)
            return tr("All parts on one scale: compute, then what the device waited for.");
        return column >= FirstPart
                   ? QVariant(StallWords::explanation(static_cast<std::size_t>(column - FirstPart)))
                   : QVariant();
    default:
        return {};
    }
}

QString ForecastModel::title(int column) const
{
    if (column == Name || column == Picture)
        return QString();
    return column == Step ? tr("Step time")
                          : StallWords::name(static_cast<std::size_t>(column - FirstPart));
}

QByteArray ForecastModel::csv() const
{
    QByteArray csvText("part,forecast_ms,measured_median_ms\n");
    for (int column = Step; column < ColumnCount; ++column) {
        if (column == Picture)
            continue;
        csvText += column == Step ? QByteArray("step")
                   : column == FirstPart
                       ? QByteArray("compute")
                       : QByteArray::fromStdString(std::string(
                             kStallCauseNames[static_cast<std::size_t>(column - FirstPart - 1)]));
        for (const int row : {Forecast, Measured}) {
            const double ms = value(row, column);
            csvText += ',';
            if (!std::isnan(ms))
                csvText += QByteArray::number(ms, 'f', 3);
        }
        csvText += '\n';
    }
    return csvText;
}

} // namespace mr::ui
