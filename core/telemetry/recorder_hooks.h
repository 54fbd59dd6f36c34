// RecorderHooks: observers of a run's records, called on the telemetry thread: the command line's
// JSON lines.
//
// Errors  None; a hook throws nothing.

#pragma once

#include <millrace/run_reader.h>

#include <functional>
#include <string_view>

namespace mr {

struct StoreBatch;

struct RecorderHooks {
    std::function<void(const StepRow&)> onStep;
    std::function<void(std::string_view metric, const ScalarRow&)> onScalar;
    std::function<void(const EventRow&)> onMessage;
    std::function<void(const IntervalRow&)> onInterval;
    std::function<void()> onCommitted; // after each transaction
};

// In the order of the steps; rows and messages of a step come after it.
void callHooks(const RecorderHooks& hooks, const StoreBatch& batch);

} // namespace mr
