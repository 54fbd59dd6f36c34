#include "math/timeline_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

constexpr double kShortestNs = 1000.0;
constexpr double kMargin = 0.15; // share of a span's length, at each of its ends
constexpr std::size_t kMostTimelineRows =
    8;                                // per lane; further overlapping spans share the last row
constexpr std::size_t kLookBack = 64; // spans that may reach over a later one's begin

TimeRange within(double from, double length, TimeRange whole)
{
    const double longest = whole.length();
    length = std::clamp(length, std::min(kShortestNs, longest), longest);
    from = std::clamp(from, whole.from, whole.to - length);
    return {from, from + length};
}

TimelineLane laneOfRow(const TimelineSpan& span)
{
    return span.kind == TimelineKind::Wait ? TimelineLane::Compute : span.lane;
}

// Position in the row of the first span that begins after `ns`.
std::size_t firstAfter(const TimelineRow& row, double ns)
{
    const auto found = std::upper_bound(row.begins.begin(), row.begins.end(), ns);
    return static_cast<std::size_t>(found - row.begins.begin());
}

// The first that may reach to `ns`.
std::size_t firstAt(const TimelineRow& row, double ns)
{
    const std::size_t after = firstAfter(row, ns);
    return after > kLookBack ? after - kLookBack : 0;
}

// Both ends of a span are rounded alike: spans that touch in time touch in columns.
double columnOf(double ns, TimeRange range, int columns)
{
    const double exact = (ns - range.from) / range.length() * columns;
    // Not round(): it is a call, and there are thousands.
    return std::floor(std::clamp(exact, 0.0, static_cast<double>(columns)) + 0.5);
}

} // namespace

TimeRange zoomed(TimeRange now, TimeRange whole, double factor, double around)
{
    const double part = now.length() > 0.0 ? (around - now.from) / now.length() : 0.5;
    const double length =
        std::clamp(now.length() * factor, std::min(kShortestNs, whole.length()), whole.length());
    return within(around - part * length, length, whole);
}

TimeRange panned(TimeRange now, TimeRange whole, double byNs)
{
    return within(now.from + byNs, now.length(), whole);
}

TimeRange revealing(TimeRange now, TimeRange whole, double beginNs, double endNs)
{
    if (beginNs >= now.from && endNs <= now.to)
        return now;
    const bool fits = endNs - beginNs <= now.length();
    if (fits && endNs > now.to)
        return within(endNs - now.length(), now.length(), whole);
    return within(beginNs, now.length(), whole);
}

TimeRange around(TimeRange whole, double beginNs, double endNs)
{
    const double room = (endNs - beginNs) * kMargin;
    return within(beginNs - room, endNs - beginNs + 2.0 * room, whole);
}

std::vector<TimelineRow> timelineRows(const StepTimeline& timeline)
{
    struct Open {
        TimelineRow row;
        std::int64_t busyUntil = 0;
    };
    std::array<std::vector<Open>, kTimelineLanes> lanes;
    lanes[0].push_back({{TimelineLane::Compute, true, {}, {}, {}}, 0});
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
        const TimelineSpan& span = timeline.spans[i];
        const TimelineLane lane = laneOfRow(span);
        std::vector<Open>& open = lanes.at(static_cast<std::size_t>(lane));
        auto free = std::find_if(open.begin(), open.end(),
            [&](const Open& row) { return row.busyUntil <= span.beginNs; });
        if (free == open.end() && open.size() < kMostTimelineRows)
            free = open.insert(open.end(), {{lane, open.empty(), {}, {}, {}}, 0});
        else if (free == open.end())
            --free;
        free->row.spans.push_back(i);
        free->row.begins.push_back(static_cast<double>(span.beginNs));
        free->row.ends.push_back(static_cast<double>(span.endNs));
        free->busyUntil = std::max(free->busyUntil, span.endNs);
    }
    std::vector<TimelineRow> rows;
    for (std::vector<Open>& open : lanes) {
        for (Open& one : open)
            rows.push_back(std::move(one.row));
    }
    return rows;
}

std::vector<std::uint32_t> rowsOfSpans(const std::vector<TimelineRow>& rows, std::size_t spanCount)
{
    std::vector<std::uint32_t> rowOf(spanCount, 0);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
        for (const std::uint32_t span : rows[row].spans)
            rowOf[span] = row;
    }
    return rowOf;
}

std::vector<TimelineBar> timelineBars(const TimelineRow& row, TimeRange range, int columns)
{
    std::vector<TimelineBar> bars;
    if (columns < 1 || !(range.length() > 0.0))
        return bars;
    double longest = 0.0; // length of the longest span in the last bar
    for (std::size_t i = firstAt(row, range.from); i < row.spans.size(); ++i) {
        if (row.begins[i] >= range.to)
            break;
        if (row.ends[i] < range.from)
            continue;
        const double left = std::min(columnOf(row.begins[i], range, columns), columns - 1.0);
        const double width = std::max(1.0, columnOf(row.ends[i], range, columns) - left);
        const double length = row.ends[i] - row.begins[i];
        // Both narrower than a column, and in the same one.
        if (!bars.empty() && width <= 1.0 && bars.back().width <= 1.0 && bars.back().left == left) {
            if (length > longest)
                bars.back().span = row.spans[i];
            longest = std::max(longest, length);
            ++bars.back().count;
            continue;
        }
        bars.push_back({row.spans[i], 1, left, width});
        longest = length;
    }
    return bars;
}

int spanAt(const TimelineRow& row, double ns, double reachNs)
{
    int best = -1;
    double bestDistance = reachNs;
    const std::size_t last = std::min(firstAfter(row, ns) + 1, row.spans.size());
    for (std::size_t i = firstAt(row, ns); i < last; ++i) {
        const double distance = std::max({0.0, row.begins[i] - ns, ns - row.ends[i]});
        if (distance <= bestDistance) {
            best = static_cast<int>(row.spans[i]);
            bestDistance = distance;
        }
    }
    return best;
}

int nearestSpan(const TimelineRow& row, double ns)
{
    return spanAt(row, ns, std::numeric_limits<double>::max());
}

int neighbour(const TimelineRow& row, int span, int by)
{
    if (row.spans.empty())
        return -1;
    const auto found =
        std::find(row.spans.begin(), row.spans.end(), static_cast<std::uint32_t>(span));
    const auto at = found == row.spans.end() ? 0 : found - row.spans.begin() + by;
    const auto most = static_cast<std::ptrdiff_t>(row.spans.size()) - 1;
    return static_cast<int>(
        row.spans[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, most))]);
}

int longestWait(const StepTimeline& timeline, StallCause cause)
{
    int best = -1;
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
        const TimelineSpan& span = timeline.spans[i];
        if (span.kind == TimelineKind::Wait && span.cause == cause &&
            span.endNs - span.beginNs > longest) {
            longest = span.endNs - span.beginNs;
            best = static_cast<int>(i);
        }
    }
    return best;
}

} // namespace mr::ui
