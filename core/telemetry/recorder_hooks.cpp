#include "core/telemetry/recorder_hooks.h"

#include "core/store/run_store.h"

#include <limits>

namespace mr {

void callHooks(const RecorderHooks& hooks, const StoreBatch& batch)
{
    std::size_t scalar = 0;
    std::size_t event = 0;
    std::size_t interval = 0;
    const auto callBefore = [&](std::int64_t step) {
        for (; interval < batch.intervals.size() && batch.intervals[interval].step < step;
             ++interval) {
            if (hooks.onInterval)
                hooks.onInterval(batch.intervals[interval]);
        }
        for (; scalar < batch.scalars.size() && batch.scalars[scalar].row.step < step; ++scalar) {
            if (hooks.onScalar)
                hooks.onScalar(batch.scalars[scalar].metric, batch.scalars[scalar].row);
        }
        for (; event < batch.events.size() && batch.events[event].step < step; ++event) {
            if (hooks.onMessage)
                hooks.onMessage(batch.events[event]);
        }
    };
    for (const StepRow& row : batch.steps) {
        callBefore(row.step);
        if (hooks.onStep)
            hooks.onStep(row);
    }
    callBefore(std::numeric_limits<std::int64_t>::max());
}

} // namespace mr
