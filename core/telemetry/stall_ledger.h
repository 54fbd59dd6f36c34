// StallLedger: the cause and the length of each stall of the device, to the nanosecond.
//
// Compute time of a step is the union of its compute tasks' intervals. Every gap between them is
// attributed along the critical path: walk back from the task that came late to the wait of it that
// ended last; the part of the gap in which that one ran belongs to its lane, the part before it
// goes on with *its* waits and the task before it on its lane. Time that nothing explains is Other
// (launching, scheduling). Time before the first task in which the engine waited for the data
// thread is Data. Rows therefore add up: compute + sum of stalls == end - begin, exactly.
//
// Pure: measured intervals and a plan in, numbers out.
//
// Threads  analyse() is const; buffers are reused, so one ledger per thread.
// Errors   none; intervals of tasks that did not run are (0, 0) and ignored.
// Units    Nanoseconds, on one clock.

#pragma once

#include "core/plan/plan.h"
#include "core/telemetry/event.h"

#include <millrace/run_reader.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

struct Interval {
    std::int64_t beginNs = 0; // when the task could have begun to run: its waits were over
    std::int64_t endNs = 0;
};

// Work of an earlier step that this step's plan waits for.
struct CarriedTime {
    TaskKind kind{};
    Lane lane{};
    Interval span;
};

struct StepTimes {
    std::int64_t beginNs = 0;      // when the step began, on the engine thread
    std::int64_t batchReadyNs = 0; // the engine had its batch; waiting before that is Data
    std::int64_t endNs = 0;
    std::span<const Interval> tasks; // by index of StepPlan::tasks
    // By index of Carry::unfinished of the carry the plan was built from; may be empty, then a
    // wait for carried work is Other.
    std::span<const CarriedTime> carried = {};
    // When the engine began to wait for its batch, if that was after beginNs.
    std::int64_t batchAskedNs = 0;
};

struct StallSplit {
    std::int64_t computeNs = 0;
    std::array<std::int64_t, kStallCauses> stallNs{}; // by StallCause
};

class StallLedger
{
public:
    // Reserves for plans of up to `tasks` tasks, so analyse() does not allocate.
    explicit StallLedger(std::size_t tasks);

    // `stalls`, if not null, receives one Stall event per attributed piece, until it is full.
    StallSplit analyse(
        const StepPlan& plan, const StepTimes& times, std::vector<TraceEvent>* stalls = nullptr);

private:
    struct Piece {
        std::uint32_t task;
        Interval span;
    };
    // One piece of work that can explain a gap: a task of the plan, or carried work.
    struct Source {
        std::int64_t task = -1; // -1: carried, the walk ends there
        TaskKind kind{};
        Lane lane{};
        Interval span;
    };
    // Input of an analysis and the place of its results.
    struct Work {
        const StepPlan& plan;
        const StepTimes& times;
        std::vector<TraceEvent>* stalls;
        StallSplit split;
    };

    void collect(const StepPlan& plan, const StepTimes& times);
    bool lastPredecessor(const Work& work, std::int64_t task, Source& out) const;
    void explainGap(Work& work, Interval gap, std::int64_t lateTask) const;
    void explainTail(Work& work, Interval gap) const;
    void walkBack(Work& work, Interval gap, Source source) const;
    static void attribute(Work& work, StallCause cause, Interval piece, const Source& source);

    std::vector<Piece> m_compute; // sorted by begin
    std::vector<std::int32_t> m_previousOnLane;
};

// The times of a step's record. Each part is cut to whole microseconds; the remainders of the cuts
// go to Other, so that the columns add up to wallUs.
StepRow toStepRow(const StallSplit& split) noexcept;

} // namespace mr
