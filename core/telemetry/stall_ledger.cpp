#include "core/telemetry/stall_ledger.h"

#include "core/plan/cost_model.h"

#include <algorithm>
#include <numeric>

namespace mr {
namespace {

bool ran(const Interval& interval) noexcept
{
    return interval.beginNs != 0 || interval.endNs != 0;
}

} // namespace

StallLedger::StallLedger(std::size_t tasks)
{
    m_compute.reserve(tasks);
    m_previousOnLane.reserve(tasks);
}

// Fills m_compute with the spans of Compute, cut to the step, and m_previousOnLane.
void StallLedger::collect(const StepPlan& plan, const StepTimes& times)
{
    m_compute.clear();
    m_previousOnLane.assign(plan.tasks.size(), -1);
    std::array<std::int32_t, kLanes> last{};
    last.fill(-1);
    const std::size_t count = std::min(plan.tasks.size(), times.tasks.size());
    for (std::size_t i = 0; i < count; ++i) {
        const Lane lane = plan.tasks[i].lane;
        std::int32_t& previous = last.at(static_cast<std::size_t>(lane));
        m_previousOnLane[i] = previous;
        if (!ran(times.tasks[i]))
            continue;
        previous = static_cast<std::int32_t>(i);
        const Interval span{std::max(times.tasks[i].beginNs, times.beginNs),
            std::min(times.tasks[i].endNs, times.endNs)};
        if (lane == Lane::Compute && span.beginNs < span.endNs)
            m_compute.push_back({static_cast<std::uint32_t>(i), span});
    }
    std::sort(m_compute.begin(), m_compute.end(), [](const Piece& a, const Piece& b) {
        return a.span.beginNs != b.span.beginNs ? a.span.beginNs < b.span.beginNs : a.task < b.task;
    });
}

StallSplit StallLedger::analyse(
    const StepPlan& plan, const StepTimes& times, std::vector<TraceEvent>* stalls)
{
    collect(plan, times);
    Work work{plan, times, stalls, {}};
    std::int64_t cursor = times.beginNs;
    const std::int64_t firstBegin = m_compute.empty() ? times.endNs : m_compute[0].span.beginNs;
    const std::int64_t asked = std::clamp(times.batchAskedNs, cursor, firstBegin);
    if (asked > cursor) {
        attribute(work, StallCause::Other, {cursor, asked}, {});
        cursor = asked;
    }
    const std::int64_t ready = std::clamp(times.batchReadyNs, cursor, firstBegin);
    if (ready > cursor) {
        attribute(work, StallCause::Data, {cursor, ready}, {});
        cursor = ready;
    }
    for (const Piece& piece : m_compute) {
        if (piece.span.beginNs > cursor)
            explainGap(work, {cursor, piece.span.beginNs}, piece.task);
        const std::int64_t from = std::max(cursor, piece.span.beginNs);
        if (piece.span.endNs > from)
            work.split.computeNs += piece.span.endNs - from;
        cursor = std::max(cursor, piece.span.endNs);
    }
    if (times.endNs > cursor)
        explainTail(work, {cursor, times.endNs});
    return work.split;
}

// Finds the predecessor that ended last, of the waits of `task` and the task before it on its lane.
bool StallLedger::lastPredecessor(const Work& work, std::int64_t task, Source& out) const
{
    bool found = false;
    const auto consider = [&](const Source& candidate) {
        if (ran(candidate.span) && (!found || candidate.span.endNs > out.span.endNs)) {
            out = candidate;
            found = true;
        }
    };
    const auto considerTask = [&](std::size_t index) {
        if (index >= work.times.tasks.size())
            return;
        const Task& t = work.plan.tasks[index];
        consider({static_cast<std::int64_t>(index), t.kind, t.lane, work.times.tasks[index]});
    };
    for (const Wait wait : work.plan.waitsOf(work.plan.tasks[static_cast<std::size_t>(task)])) {
        if (!wait.isCarried()) {
            considerTask(wait.index());
        } else if (wait.index() < work.times.carried.size()) {
            const CarriedTime& carried = work.times.carried[wait.index()];
            consider({-1, carried.kind, carried.lane, carried.span});
        }
    }
    const std::int32_t previous = m_previousOnLane[static_cast<std::size_t>(task)];
    if (previous >= 0)
        considerTask(static_cast<std::size_t>(previous));
    return found;
}

void StallLedger::explainGap(Work& work, Interval gap, std::int64_t lateTask) const
{
    Source late;
    late.task = lateTask;
    late.kind = work.plan.tasks[static_cast<std::size_t>(lateTask)].kind;
    late.lane = Lane::Compute;
    Source source;
    if (lastPredecessor(work, lateTask, source) && source.span.endNs > gap.beginNs)
        walkBack(work, gap, source);
    else
        attribute(work, StallCause::Other, gap, late);
}

// After the last compute task, the step waited for the work that ended last.
void StallLedger::explainTail(Work& work, Interval gap) const
{
    Source last;
    last.lane = Lane::Compute;
    const std::size_t count = std::min(work.plan.tasks.size(), work.times.tasks.size());
    for (std::size_t i = 0; i < count; ++i) {
        const Task& task = work.plan.tasks[i];
        const Interval span = work.times.tasks[i];
        if (ran(span) && task.lane != Lane::Compute && span.endNs > last.span.endNs)
            last = {static_cast<std::int64_t>(i), task.kind, task.lane, span};
    }
    if (last.task >= 0 && last.span.endNs > gap.beginNs)
        walkBack(work, gap, last);
    else
        attribute(work, StallCause::Other, gap, {});
}

// From the end of the gap to its beginning. Ends: a predecessor comes earlier in the plan.
void StallLedger::walkBack(Work& work, Interval gap, Source source) const
{
    std::int64_t until = gap.endNs;
    while (until > gap.beginNs) {
        const std::int64_t end = std::clamp(source.span.endNs, gap.beginNs, until);
        const std::int64_t begin = std::clamp(source.span.beginNs, gap.beginNs, end);
        if (until > end) // ready, but not yet started
            attribute(work, StallCause::Other, {end, until}, source);
        if (end > begin)
            attribute(work, causeOf(source.lane), {begin, end}, source);
        until = begin;
        Source before;
        if (until == gap.beginNs)
            return;
        if (source.task < 0 || !lastPredecessor(work, source.task, before)) {
            attribute(work, StallCause::Other, {gap.beginNs, until}, source);
            return;
        }
        source = before;
    }
}

void StallLedger::attribute(Work& work, StallCause cause, Interval piece, const Source& source)
{
    work.split.stallNs.at(static_cast<std::size_t>(cause)) += piece.endNs - piece.beginNs;
    if (work.stalls == nullptr || work.stalls->size() == work.stalls->capacity())
        return;
    TraceEvent event;
    event.kind = cause == StallCause::Data ? SpanKind::BatchWait : SpanKind::Stall;
    event.task = source.kind;
    // A stall without a cause shows as Compute's own.
    event.lane = cause == StallCause::Other ? Lane::Compute : source.lane;
    if (source.task >= 0) {
        const Task& task = work.plan.tasks[static_cast<std::size_t>(source.task)];
        event.group = task.group.value;
        event.micro = task.micro.value;
    }
    event.step = work.plan.step;
    event.beginNs = piece.beginNs;
    event.endNs = piece.endNs;
    work.stalls->push_back(event);
}

StepRow toStepRow(const StallSplit& split) noexcept
{
    const std::int64_t wallNs =
        std::accumulate(split.stallNs.begin(), split.stallNs.end(), split.computeNs);
    StepRow row;
    row.wallUs = wallNs / 1000;
    row.computeUs = split.computeNs / 1000;
    std::int64_t rest = row.wallUs - row.computeUs;
    constexpr auto kOther = static_cast<std::size_t>(StallCause::Other);
    for (std::size_t i = 0; i < kStallCauses; ++i) {
        row.stallUs[i] = split.stallNs[i] / 1000;
        if (i != kOther)
            rest -= row.stallUs[i];
    }
    row.stallUs[kOther] =
        rest; // at least its own cut part: a sum of cuts is never above the cut sum
    return row;
}

} // namespace mr
