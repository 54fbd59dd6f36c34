// TierMap: where the bytes of each layer are, as the plan placed them; a small stacked bar for each
// layer and kind of bytes, device, host and disk.
//
// Threads    GUI.
// Ownership  Keeps the plan's numbers, not the plan.

#pragma once

#include "charts/chart_panel.h"

#include <millrace/planner.h>

#include <memory>

class QLabel;
class QTableView;

namespace mr::ui {

class TierMapModel;

class TierMap final : public ChartPanel
{
    Q_OBJECT

public:
    explicit TierMap(QWidget* parent = nullptr);

    // Null, or one of an earlier program that does not name its layers: a sentence says so.
    void setPlan(const std::shared_ptr<const PlanReport>& plan);
    QTableView* table() const { return m_table; }
    TierMapModel* model() const { return m_model; }

private:
    TierMap(QTableView* table, QWidget* content, QWidget* parent);
    void setUpTable();
    void showLegend();
    void fitHeight();

    QTableView* m_table = nullptr;
    QLabel* m_sentence = nullptr;
    TierMapModel* m_model = nullptr;
    std::shared_ptr<const PlanReport> m_plan;
};

} // namespace mr::ui
