// planAnswer(): the plan of a run, and of the run it is compared with, if there is one.
//
// Threads  Blocks (reads model and machine): a worker. Takes copies, shares nothing.
// Errors   As for the first run that cannot be planned; a plan that does not fit is an answer.

#pragma once

#include "bridge/ui_services.h"
#include "widgets/plan_panel.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace mr::ui {

struct PlanAnswer {
    std::optional<Status> problem;
    std::vector<PlanView> views; // one for each run
};

// `trainRows` of micro-batches in an epoch, as in resolveSpec(). Each run finds the disk as those
// before it leave it.
PlanAnswer planAnswer(
    const UiServices& services, const std::vector<RunSpec>& runs, std::int64_t trainRows);

} // namespace mr::ui
