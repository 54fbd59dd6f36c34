// The machine over the time of a run, as small charts side by side. Shows only the measured
// metrics, and nothing if there are none.
//
// All of them show the same stretch of time.
//
// Threads    GUI.
// Ownership  Keeps the last history it was given; charts hold the points they show.
// Units      Seconds of active time since the run began.

#pragma once

#include "charts/machine_words.h"
#include "models/machine_history.h"

#include <QWidget>

#include <cstddef>
#include <vector>

class QGridLayout;
class QLabel;

namespace mr::ui {

class ChartPanel;
class LineChart;

class MachineSection final : public QWidget
{
    Q_OBJECT

public:
    explicit MachineSection(QWidget* parent = nullptr);

    // Null: nothing was measured. `energyJ` of the device, NaN where it is not known.
    void setHistory(const MachineHistoryPtr& history, double energyJ);
    void clear();
    void setRange(double lower, double upper);
    void setCursor(double seconds); // NaN: none
    std::vector<LineChart*> shownCharts() const;

signals:
    void rangePicked(double lower, double upper);
    void allPicked();
    void cursorMoved(double seconds); // NaN: left

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Line {
        MachineLine words;
        int series = -1;         // index in the chart; -1: nothing was measured yet
        std::size_t entries = 0; // shown
    };

    struct Small {
        MachineChart words;
        std::vector<Line> lines;
        std::size_t inLegend = 0; // lines
        LineChart* chart = nullptr;
        ChartPanel* panel = nullptr;
    };

    void add(MachineChart words);
    void showLines(Small& small);
    void fill(Small& small, Line& line);
    void showLegend(const Small& small);
    void arrange();

    MachineHistoryPtr m_history;
    std::int64_t m_periodMs = 0;
    std::vector<Small> m_smalls;
    QLabel* m_energy = nullptr;
    QGridLayout* m_grid = nullptr;
    int m_columns = 0;
};

} // namespace mr::ui
