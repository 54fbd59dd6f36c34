// Which of the kept steps to look at.
//
// Threads  Pure.

#pragma once

#include "math/step_series.h"

#include <millrace/run_reader.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mr::ui {

// The kept step that lost most time to `part`: 0 is compute, 1 + n is StallCause n, above that the
// whole step. None: no step was kept, or none lost any.
std::optional<std::int64_t> worstTracedStep(
    const std::vector<TraceInfo>& traces, const StepSeries& steps, std::size_t part);

// The kept step `by` places from `step`; none: there is no such one.
std::optional<std::int64_t> tracedNeighbour(
    const std::vector<TraceInfo>& traces, std::int64_t step, int by);

} // namespace mr::ui
