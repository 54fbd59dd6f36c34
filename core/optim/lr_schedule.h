// The learning rate of a step, from the schedule alone.
//
// Source   huggingface/transformers, get_constant_schedule_with_warmup, get_linear_... and
//          get_cosine_schedule_with_warmup, with half a period down to 0.
// Threads  Pure.
// Units    `step` counts optimizer steps from 0; the rate is the one its update uses. So with
//          a warm-up the first step has rate 0 and the rate is full at step `warmupSteps`.

#pragma once

#include <millrace/run_spec.h>

#include <cstdint>

namespace mr {

struct LrSchedule {
    ScheduleKind kind = ScheduleKind::Cosine;
    double peak = 2e-5;
    std::int64_t warmupSteps = 0;
    std::int64_t totalSteps = 1; // in the run; the rate is 0 from there on (not Constant)
};

double learningRate(const LrSchedule& schedule, std::int64_t step);

} // namespace mr
