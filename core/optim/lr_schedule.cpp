#include "core/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mr {

double learningRate(const LrSchedule& schedule, std::int64_t step)
{
    if (step < schedule.warmupSteps)
        return schedule.peak * static_cast<double>(step) /
               static_cast<double>(schedule.warmupSteps);
    const auto falling =
        static_cast<double>(std::max<std::int64_t>(1, schedule.totalSteps - schedule.warmupSteps));
    const double progress =
        std::clamp(static_cast<double>(step - schedule.warmupSteps) / falling, 0.0, 1.0);
    switch (schedule.kind) {
    case ScheduleKind::Constant:
        return schedule.peak;
    case ScheduleKind::Linear:
        return schedule.peak * (1.0 - progress);
    case ScheduleKind::Cosine:
        return schedule.peak * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    }
    return schedule.peak;
}

} // namespace mr
