// The timelines a run kept: the list from the database, one of them from its file.
//
// The file is the Chrome trace that telemetry writes. One of an earlier program has no lane beside
// a wait; it is then taken from the task that was waited for.
//
// Threads  As Database; timelineFromTrace is pure.
// Errors   As Database. InvalidArgument for a step that was not kept, Io with the file that is
//          gone, DataCorrupt for text that is no trace. Slices of an unknown row are left out.

#pragma once

#include "core/store/sqlite.h"

#include <millrace/run_reader.h>
#include <millrace/status.h>
#include <millrace/step_timeline.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace mr {

Result<std::vector<TraceInfo>> readTraces(Database& database, std::int64_t runId);
Result<StepTimeline> readTimeline(Database& database, std::int64_t runId, std::int64_t step);

// `step` and `why` are the caller's to fill in.
Result<StepTimeline> timelineFromTrace(std::string_view json);

} // namespace mr
