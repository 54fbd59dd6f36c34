// The loss of a run: each step, smoothed, and on held-out data.
//
// Threads    GUI.
// Ownership  Keeps the steps it was given (shared blocks, cheap).

#pragma once

#include "charts/chart_panel.h"
#include "math/series_math.h"
#include "math/step_series.h"

#include <vector>

class QCheckBox;
class QSpinBox;

namespace mr::ui {

class LineChart;

class LossPanel final : public ChartPanel
{
    Q_OBJECT

public:
    explicit LossPanel(QWidget* parent = nullptr);

    LineChart* chart() const { return m_chart; }
    void clear();
    // Rows from `first` on are new; those before it were given already.
    void append(const StepSeries& steps, std::size_t first);
    void setEvaluations(const std::vector<ScalarRow>& rows);

private:
    LossPanel(LineChart* chart, QWidget* parent);
    void makeSeries();
    void makeTools();
    void resmooth();

    LineChart* m_chart = nullptr;
    QSpinBox* m_window = nullptr;
    QCheckBox* m_log = nullptr;
    StepSeries m_steps;
    Ema m_ema;
};

} // namespace mr::ui
