// The kept steps of a run, one at a time, as a timeline: choosing the step, its legend, its table.
//
// Asks for a step by timelineRequested() and shows the answer that setTimeline() brings; an answer
// to an earlier choice is dropped. Follows the newest kept step until one is chosen.
//
// Threads    GUI.
// Ownership  Shares the timeline it shows.

#pragma once

#include "charts/chart_panel.h"
#include "models/run_snapshot.h"
#include "models/step_timeline_ptr.h"

#include <QString>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

class QComboBox;
class QLabel;
class QPushButton;
class QStackedWidget;
class QToolButton;

namespace mr::ui {

class StepTimelineChart;
class TimelineTableModel;

class TimelineSection final : public ChartPanel
{
    Q_OBJECT

public:
    explicit TimelineSection(QWidget* parent = nullptr);

    StepTimelineChart* chart() const { return m_chart; }
    TimelineTableModel* tasks() const { return m_model; }
    // For another run, or one that went back: the timeline shown is out of date.
    void clear();
    void setSnapshot(const RunSnapshotPtr& snapshot);
    void setTimeline(const mr::ui::TimelinePtr& timeline);
    void setFailure(qint64 step, const QString& sentence);
    // Chooses the kept step that lost most time to `part` (as worstTracedStep) and, once it is
    // there, its longest wait for that cause. False: no kept step lost any.
    bool showWorst(std::size_t part);

signals:
    void timelineRequested(qint64 step);
    void tableRequested(); // for tasks()

private:
    TimelineSection(StepTimelineChart* chart, QStackedWidget* stack, QWidget* parent);
    void makeTools();
    void fillSteps();
    void choose(std::int64_t step);
    void chooseBeside(int by);
    void showLegend();
    void say(const QString& sentence);
    void enableTools();

    StepTimelineChart* m_chart = nullptr;
    QStackedWidget* m_stack = nullptr;
    QLabel* m_sentence = nullptr;
    QToolButton* m_before = nullptr;
    QToolButton* m_after = nullptr;
    QComboBox* m_choice = nullptr;
    QPushButton* m_fit = nullptr;
    QPushButton* m_table = nullptr;
    TimelineTableModel* m_model = nullptr;

    RunSnapshotPtr m_snapshot;
    std::vector<std::string> m_groups;
    std::vector<TraceInfo> m_traces;   // as the box shows them
    std::int64_t m_step = -1;          // chosen; -1: none
    bool m_follows = true;             // the newest
    std::optional<StallCause> m_cause; // selects its longest wait once the step is there
};

} // namespace mr::ui
