// A step of the timeline, or one of its tasks, as text: for readouts, tool tips and screen readers.
//
// `groups` are the names of layers, by group; `span` is an index of the timeline's spans.

#pragma once

#include <millrace/step_timeline.h>

#include <QCoreApplication>
#include <QString>

#include <string>
#include <vector>

namespace mr::ui {

struct TimelineText {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::TimelineText)

public:
    // Duration of the step, and the cause for which Compute waited longest.
    static QString summary(const StepTimeline& timeline);
    // All about the span in one line.
    static QString sentence(
        const StepTimeline& timeline, int span, const std::vector<std::string>& groups);
    // All about the span as HTML. `alsoHere`: spans that share its pixel.
    static QString toolTip(const StepTimeline& timeline, int span,
        const std::vector<std::string>& groups, int alsoHere);
};

} // namespace mr::ui
