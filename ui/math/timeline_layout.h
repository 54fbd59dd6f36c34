// The arithmetic of the step timeline, without a widget: rows, their visible bars, the span under
// the pointer, zooming and panning.
//
// Waits lie in the rows of Compute, the lane that waits. Spans of one lane that overlap lie in rows
// of their own, one below the other.
//
// Threads  Values and pure functions.
// Units    Nanoseconds since the step's first span; columns are device pixels.

#pragma once

#include <millrace/step_timeline.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mr::ui {

struct TimeRange {
    double from = 0.0;
    double to = 1.0;

    double length() const noexcept { return to - from; }
    friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

// Never longer than `whole`, never shorter than a microsecond, never outside of `whole`.
TimeRange zoomed(TimeRange now, TimeRange whole, double factor, double around);
TimeRange panned(TimeRange now, TimeRange whole, double byNs);
// At the same scale, moved no further than needed to see [beginNs, endNs], or its beginning.
TimeRange revealing(TimeRange now, TimeRange whole, double beginNs, double endNs);
// Around a span, with room at both ends.
TimeRange around(TimeRange whole, double beginNs, double endNs);

struct TimelineRow {
    TimelineLane lane{};
    bool firstOfLane = true;
    std::vector<std::uint32_t> spans; // indices in the timeline, by begin
    // Their times, side by side: thousands are looked at for every picture.
    std::vector<double> begins;
    std::vector<double> ends;
};

// Only lanes with work have rows; Compute has one always.
std::vector<TimelineRow> timelineRows(const StepTimeline& timeline);
// The row in which each span lies.
std::vector<std::uint32_t> rowsOfSpans(const std::vector<TimelineRow>& rows, std::size_t spanCount);

// One bar: a span, or several that share a column.
struct TimelineBar {
    std::uint32_t span = 0; // the longest of them
    std::uint32_t count = 1;
    double left = 0.0; // columns, whole numbers
    double width = 1.0;
};

// Bars of the spans in `range`, left to right, at least one column wide each.
std::vector<TimelineBar> timelineBars(const TimelineRow& row, TimeRange range, int columns);

// The span at `ns`, or the nearest one no further away than `reachNs`; -1: none.
int spanAt(const TimelineRow& row, double ns, double reachNs);
// The one that overlaps `ns`, or the nearest; -1 for an empty row.
int nearestSpan(const TimelineRow& row, double ns);
// The span `by` places after `span` in its row; the first or last one at the ends.
int neighbour(const TimelineRow& row, int span, int by);

// The longest wait for this cause; -1: none.
int longestWait(const StepTimeline& timeline, StallCause cause);

} // namespace mr::ui
