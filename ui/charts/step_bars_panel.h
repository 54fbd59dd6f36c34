// The mean step of two runs as bars on one scale, in a frame with the legend of the causes.
//
// Threads    GUI.
// Ownership  Owns its model.

#pragma once

#include "charts/chart_panel.h"
#include "models/step_bars_model.h"

class QTableView;

namespace mr::ui {

class StepBarsPanel final : public ChartPanel
{
    Q_OBJECT

public:
    explicit StepBarsPanel(QWidget* parent = nullptr);

    void setRuns(const StepBarsModel::Run& first, const StepBarsModel::Run& second);
    StepBarsModel* model() const { return m_model; }
    QTableView* table() const { return m_table; }

private:
    StepBarsPanel(QTableView* table, QWidget* parent);
    void setUpTable();
    void showLegend();

    QTableView* m_table = nullptr;
    StepBarsModel* m_model = nullptr;
};

} // namespace mr::ui
