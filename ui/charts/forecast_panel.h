// Forecast against truth: the time of a step as the plan predicted it, and as it was.
//
// Threads  GUI.

#pragma once

#include "charts/chart_panel.h"
#include "models/run_snapshot.h"

class QTableView;

namespace mr::ui {

class ForecastModel;

class ForecastPanel final : public ChartPanel
{
    Q_OBJECT

public:
    explicit ForecastPanel(QWidget* parent = nullptr);

    // Measured are the steps with lower <= step <= upper.
    void setRun(const RunSnapshot& run, double lower, double upper);
    ForecastModel* model() const { return m_model; }
    QTableView* table() const { return m_table; }

private:
    ForecastPanel(QTableView* table, QWidget* parent);
    void setUpTable();
    void fitTable();

    QTableView* m_table = nullptr;
    ForecastModel* m_model = nullptr;
};

} // namespace mr::ui
