// Content of each tier of memory: the plan's bytes by kind, stacked, and the peak that was
// measured.
//
// Threads  GUI.

#pragma once

#include "models/run_snapshot.h"

#include <QWidget>

class QLabel;
class QVBoxLayout;

namespace mr::ui {

class Legend;
class StackedBar;

class MemoryPanel final : public QWidget
{
    Q_OBJECT

public:
    explicit MemoryPanel(QWidget* parent = nullptr);

    // Without a plan only the measured peaks are known.
    void setMemory(std::shared_ptr<const PlanReport> plan, std::int64_t devicePeakBytes,
        std::int64_t hostPeakBytes);
    QByteArray csv() const;

protected:
    void changeEvent(QEvent* event) override;

private:
    struct Row {
        QLabel* name = nullptr;
        QLabel* numbers = nullptr;
        StackedBar* bar = nullptr;
    };

    void show(Row& row, const std::string& tier, std::int64_t peakBytes);
    void rebuild();

    std::shared_ptr<const PlanReport> m_plan;
    std::int64_t m_devicePeak = 0;
    std::int64_t m_hostPeak = 0;
    Row m_device;
    Row m_host;
    Row m_disk;
    Legend* m_legend = nullptr;
};

} // namespace mr::ui
