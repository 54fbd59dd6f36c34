// The losses of two runs in one chart: smoothed, and on held-out data; over steps, or over the time
// that each has trained.
//
// Threads    GUI.
// Ownership  Keeps the snapshots it shows.

#pragma once

#include "charts/chart_panel.h"
#include "models/run_range.h"
#include "models/run_snapshot.h"

#include <array>
#include <optional>

class QComboBox;

namespace mr::ui {

class LineChart;

class LossOverlay final : public ChartPanel
{
    Q_OBJECT

public:
    explicit LossOverlay(QWidget* parent = nullptr);

    // A run that has not begun is null.
    void setRuns(const std::array<RunSnapshotPtr, 2>& runs, const std::array<QString, 2>& labels);
    LineChart* chart() const { return m_chart; }
    QComboBox* axis() const { return m_axis; }

private:
    LossOverlay(LineChart* chart, QWidget* parent);
    void makeSeries();
    void makeTools();
    bool overTime() const;
    void changeAxis();
    RunRange::Ends wholeTime() const;
    void showLabels(const std::array<QString, 2>& labels);
    void showRun(int run);
    void showRange();
    const RunSnapshot* longer() const; // null: neither has steps

    LineChart* m_chart = nullptr;
    std::array<RunSnapshotPtr, 2> m_runs;
    std::array<QString, 2> m_labels;
    RunRange m_range;
    std::optional<RunRange::Ends> m_seconds; // that were picked; none: all of them
    QComboBox* m_axis = nullptr;
};

} // namespace mr::ui
