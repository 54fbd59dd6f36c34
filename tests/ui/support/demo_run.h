// The rows of demo_rows.h, written into a real history database.

#pragma once

#include "core/store/run_store.h"

#include <cstdint>
#include <string>

namespace mr::ui::test {

// A run of `count` steps of `total`, with evaluations, events and two checkpoints; `status` done,
// stopped or failed ends it, anything else leaves it running. The id of the run.
Result<std::int64_t> fillDemoRun(RunStore& store, const std::string& name, std::int64_t count,
    std::int64_t total, RunStatus status);

} // namespace mr::ui::test
