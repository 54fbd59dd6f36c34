// The plan's forecast of a step beside the measured one: its time, and where it goes.
//
// Measured times are medians, each of its own, so the parts need not add up to the step. An unknown
// forecast is never shown as a number.
//
// Units  Milliseconds.

#pragma once

#include "math/step_series.h"
#include "models/table_model.h"

#include <millrace/planner.h>

#include <QByteArray>

#include <array>
#include <cstdint>

namespace mr::ui {

struct StepTimesMs {
    bool known = false;
    double step = 0.0;
    std::array<double, 1 + kStallCauses> parts{}; // compute, then the causes
};

// Medians of the steps with lower <= step <= upper, of the last 10,000 of them; `count` becomes how
// many that were.
StepTimesMs medianTimes(const StepSeries& steps, double lower, double upper, std::int64_t& count);
StepTimesMs forecastTimes(const PlanReport* plan); // not known: null, or no rates were

class ForecastModel final : public TableModel
{
    Q_OBJECT

public:
    enum Row { Forecast, Measured, Difference, RowCount };
    enum Column { Name, Step, Picture, FirstPart, ColumnCount = FirstPart + 1 + kStallCauses };
    // ValueRole: milliseconds; not valid where there is no number.

    explicit ForecastModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    void setTimes(const StepTimesMs& forecast, const StepTimesMs& measured);
    bool hasForecast() const { return m_forecast.known; }
    // Neither forecast nor measured has time in this column.
    bool isEmpty(int column) const;
    QByteArray csv() const;

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    const StepTimesMs& times(int row) const;
    double value(int row, int column) const; // NaN: none
    QString text(int row, int column) const;
    QVariant share(int row) const;

    StepTimesMs m_forecast;
    StepTimesMs m_measured;
};

} // namespace mr::ui
