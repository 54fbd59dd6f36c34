// The small charts of a run over its steps: link and disk traffic, speed, learning rate, gradient
// norm.
//
// Threads    GUI.
// Ownership  The panels belong to the caller, which lays them out.

#pragma once

#include "math/step_series.h"

#include <QObject>
#include <QString>

#include <array>
#include <cstddef>

namespace mr::ui {

class ChartPanel;
class LineChart;

class StepCharts final : public QObject
{
    Q_OBJECT

public:
    enum Chart { Traffic, DiskTraffic, Speed, LearningRate, GradientNorm, ChartCount };

    explicit StepCharts(QObject* parent = nullptr);

    ChartPanel* panel(Chart chart) const { return m_panels[chart]; }
    const std::array<LineChart*, ChartCount>& charts() const { return m_charts; }
    // Rows from `first` on are new.
    void append(const StepSeries& steps, std::size_t first);
    // Any step read from a disk or wrote to it; else there is nothing to see in DiskTraffic.
    bool usesDisk() const { return m_usesDisk; }

private:
    void add(Chart chart, const QString& title, const QString& fileName);
    void addSeries(Chart chart, const QString& name, const QString& column, std::size_t color,
        QString (*text)(double));

    std::array<ChartPanel*, ChartCount> m_panels{};
    std::array<LineChart*, ChartCount> m_charts{};
    bool m_usesDisk = false;
};

} // namespace mr::ui
