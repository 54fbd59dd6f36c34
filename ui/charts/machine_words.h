// The small charts of the machine, the series in each, and their texts.
//
// Threads  GUI.

#pragma once

#include <millrace/machine_metrics.h>

#include <QString>

#include <cstddef>
#include <functional>
#include <vector>

namespace mr::ui {

struct MachineLine {
    MachineMetric metric{};
    QString name;
    QString explanation;
    QString column; // name in the CSV file: ASCII, with the unit
    std::size_t color = 0;
};

struct MachineChart {
    QString title; // with the unit
    QString fileName;
    double perUnit = 1.0;                // stored units in one unit of the chart
    double leastTop = 0.0;               // least top of the vertical axis; 0: none
    std::function<QString(double)> text; // one value of the chart with its unit
    std::vector<MachineLine> lines;
};

struct MachineWords {
    static std::vector<MachineChart> charts();
};

} // namespace mr::ui
