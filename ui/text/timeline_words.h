// The words and colours of a step's timeline: lanes, tasks, layers, and why a step was kept.
//
// Tasks that belong together share a colour and an entry of the legend (TimelineClass).

#pragma once

#include "text/theme_colors.h"

#include <millrace/step_timeline.h>

#include <QColor>
#include <QCoreApplication>
#include <QString>
#include <QStringList>

#include <cstddef>
#include <string>
#include <vector>

namespace mr::ui {

enum class TimelineClass {
    Wait,
    Forward,
    Backward,
    Gradients,
    Optimizer,
    Weights,
    State,
    Boundaries,
    Batches,
    DiskRead,
    DiskWrite,
    Engine,
};
inline constexpr std::size_t kTimelineClasses = 12;

struct TimelineWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::TimelineWords)

public:
    static TimelineClass classOf(const TimelineSpan& span);
    static QString className(TimelineClass kind);
    static QColor classColor(TimelineClass kind, const ThemeColors& colors);

    static QString lane(TimelineLane lane);
    // One sentence: the tasks of the lane.
    static QString laneExplanation(TimelineLane lane);
    // "Fetch weights"; a task that is not known as the engine names it.
    static QString task(const std::string& name);
    // "Layer 3" for "block 3"; a name that is not known as it is.
    static QString layer(const std::string& name);
    static QString layerOf(const TimelineSpan& span, const std::vector<std::string>& groups);
    // "kept every 50 steps"
    static QString why(const std::string& reason);

    // Candidates for the text in a span's bar, the longest first.
    static QStringList barTexts(const TimelineSpan& span, const std::vector<std::string>& groups);
    // "Forward", or "Waits for Upload".
    static QString title(const TimelineSpan& span);
};

// "12.345 ms", "830 µs": precise enough to tell neighbours apart.
QString spanText(double ns);

} // namespace mr::ui
