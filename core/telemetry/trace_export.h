// Spans of a step as Chrome trace JSON, which chrome://tracing and ui.perfetto.dev open.
//
// One row per lane; where spans of one lane overlap, the later one goes to a second row, because
// complete slices ("X") of one row must nest. Flow arrows lead from the work that Compute waited
// for to the slice that waited. Times are microseconds since the first span.
//
// Threads  Pure.

#pragma once

#include "core/telemetry/event.h"

#include <span>
#include <string>

namespace mr {

std::string toChromeTrace(std::span<const TraceEvent> spans);

} // namespace mr
