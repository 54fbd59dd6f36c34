// PlanForecast: the time of a step as a plan predicts it, as a bar and by cause.
//
// Two of them on one scale compare two plans: the faster one has the shorter bar.
//
// Threads    GUI.
// Ownership  Keeps nothing of the plan.
// Units      Milliseconds.

#pragma once

#include <millrace/planner.h>

#include <QCoreApplication>
#include <QWidget>

namespace mr::ui {

class PlanForecast final : public QWidget
{
    Q_OBJECT

public:
    // `wholeMs`: time that the full width of the bar stands for; 0: the step's own. Precondition:
    // plan.predictedStepMs > 0.
    PlanForecast(const PlanReport& plan, double wholeMs, QWidget* parent);
};

} // namespace mr::ui
