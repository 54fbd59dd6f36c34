// planAnswer(): the plan of a run, of the run it is compared with, if there is one, and of the
// other methods to train the model.
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

struct PlanQuestion {
    std::vector<RunSpec> runs;  // each finds the disk as those before it leave it
    RunSpec methods;            // for planAllMethods()
    std::int64_t trainRows = 0; // of micro-batches in an epoch, as in resolveSpec()
};

struct PlanAnswer {
    std::optional<Status> problem;
    std::vector<PlanView> views;     // one for each run
    std::vector<PlanReport> methods; // empty: none could be planned
};

PlanAnswer planAnswer(const UiServices& services, const PlanQuestion& question);

} // namespace mr::ui
