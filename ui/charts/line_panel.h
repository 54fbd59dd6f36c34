// Shared by all line charts in a frame.
//
// Threads  GUI.

#pragma once

#include <QColor>
#include <QString>

#include <cstddef>
#include <functional>

class QPalette;

namespace mr::ui {

class ChartPanel;
class LineChart;

// Export menu, readout and help. `fileName` is offered when the chart is saved.
void dressLinePanel(ChartPanel& panel, LineChart& chart, const QString& fileName);

// Series colour `number` of the current theme.
std::function<QColor(const QPalette&)> seriesColor(std::size_t number);

} // namespace mr::ui
