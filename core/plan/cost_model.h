// Cost model: forecasts the duration of a plan and its stalls by cause, from measured rates.
//
// The lanes are simulated in order: a task begins when the one before it on its lane and all tasks
// it waits for are over, and lasts flops, bytes or elements divided by the rate of its kind. Gaps
// between compute tasks are attributed by the rule of the stall ledger, so that forecast and
// measurement have the same columns. Layers take their measured seconds where there are any. Copies
// both ways at once and host work beside copies are assumed to run at full rate; the comparison
// after the run shows where they did not.
//
// Threads  A forecaster has one owner and keeps its memory; the functions are pure.
// Disk     A task takes the rate of both ways at once if the disk moves something the other way
//          when the task begins; else the rate of its own way alone.
// Errors   none; a rate that is needed and not known makes the forecast unknown.
// Units    Seconds, bytes.

#pragma once

#include "core/plan/policy.h"

#include <millrace/run_reader.h>

#include <array>
#include <cstdint>
#include <vector>

namespace mr {

// Which column of the stall ledger a wait for work on this lane belongs to.
StallCause causeOf(Lane lane) noexcept;

struct CostInput {
    const ModelShape& shape;
    const Feedback& rates;
    Precision precision = Precision::BF16;
    Recompute recompute = Recompute::Block;
};

struct StepForecast {
    bool known = false; // false: a needed rate is 0, and all else is 0 too
    double stepSeconds = 0.0;
    double computeSeconds = 0.0;
    std::array<double, kStallCauses> stallSeconds{}; // with compute they add up to the step
};

class StepForecaster
{
public:
    StepForecast forecast(const StepPlan& plan, const CostInput& input);

private:
    struct Span {
        double begin = 0.0;
        double end = 0.0;
        std::int32_t previous = -1; // the task before it on its lane
    };

    bool simulate(const StepPlan& plan, const CostInput& input);
    using LastOnLane = std::array<std::int32_t, kLanes>; // tasks; -1: none yet
    bool isOtherWay(
        const StepPlan& plan, const LastOnLane& lastOnLane, TaskKind kind, double time) const;
    void attribute(const StepPlan& plan, std::int32_t late, double gapBegin, StepForecast& out);
    double diskSeconds(const StepPlan& plan) const; // one transfer of a kind after the other
    std::int32_t lastBefore(const StepPlan& plan, std::int32_t task) const;

    std::vector<Span> m_spans; // by task
};

// Bytes one plan moves over the link. Exact.
struct LinkTraffic {
    std::int64_t hostToDeviceBytes = 0;
    std::int64_t deviceToHostBytes = 0;
};
LinkTraffic linkTraffic(const StepPlan& plan, const ModelShape& shape, Precision precision);

// Bytes one plan moves between host and disk, in whole pages. Exact.
struct DiskTraffic {
    std::int64_t readBytes = 0;
    std::int64_t writtenBytes = 0;
};
DiskTraffic diskTraffic(const StepPlan& plan, const ModelShape& shape, Precision precision);

// Bytes one task on a disk lane moves, in whole pages.
std::int64_t diskBytes(
    const StepPlan& plan, const Task& task, const ModelShape& shape, Precision precision) noexcept;

// Bytes one task copies between host and device, or 0. A plan does not have the moves of columns
// that change owner.
std::int64_t copyBytes(
    const StepPlan& plan, const Task& task, const ModelShape& shape, Precision precision) noexcept;

} // namespace mr
