// RunSetup: a spec worked out, before anything is allocated: model, sizes, policy, memory.
//
// Everything that is chosen automatically is chosen here, once, from the spec, the model's config
// and the machine (decisions.md 4, 17, 18), and lands in the resolved spec that the run record
// keeps.
//
// Threads  Values.
// Errors   InvalidArgument from config and spec. That a plan does not fit is no error here: see
//          `limit`.

#pragma once

#include "core/base/host_memory.h"
#include "core/choose/scratch_set.h"
#include "core/choose/turn_plan.h"
#include "core/model/layout.h"
#include "core/model/model_config.h"
#include "core/model/param_table.h"
#include "core/plan/cost_model.h"
#include "core/plan/memory_plan.h"
#include "core/plan/policies.h"

#include <millrace/library.h>
#include <millrace/planner.h>
#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstdint>
#include <string>

namespace mr {

struct RunSetup {
    RunSpec spec;  // resolved
    RunSpec asked; // options the user left open are open still
    ModelConfig config;
    ParamTable table; // what is trained; its frozen model is the rest
    MicroShape micro;
    ModelShape shape;
    StepSpec step;  // common to all steps, except its number
    TurnPlan turns; // table, shape and memory are of one turn, if there are any
    OffloadPolicy policy;
    PolicyNumbers numbers;      // its options, said or chosen: spec.policyOptions
    PolicyNumbers askedNumbers; // asked.policyOptions
    Budget budget;
    HostMemory host; // of the machine, as it was read for the budget
    MemoryPlan memory;
    std::string limit; // which tier binds and by how much; empty if it fits
    Feedback rates;    // measured before (RateCache); 0 where not
    ScratchSet scratch;
    // Where frozen weights on disk are read from: the model's own files, or a file that is prepared
    // in the first scratch folder because they have another form.
    bool readsOwnFiles = false;
    ScratchSet baseDrive; // of those
    StepForecast forecast;
    LinkTraffic traffic; // for a step in the middle of the run
    DiskTraffic diskTraffic;
    std::string reason; // why `auto` chose this policy; empty if it was asked for
};

// `trainRows` of micro-batches in an epoch: sequences, or packed rows. 0: not known yet; then steps
// stay 0 where they depend on it. Rates are those the user's RateCache has; nothing is measured
// here.
Result<RunSetup> setUpRun(const RunSpec& spec, std::int64_t trainRows);
// For a machine that is like this.
Result<RunSetup> setUpRun(const RunSpec& spec, std::int64_t trainRows, const MachineInfo& machine);

// Optimizer steps of the run a resolved spec asks for.
std::int64_t stepCount(const RunSpec& spec, std::int64_t trainRows) noexcept;

// The sentence for a run that will hold more host memory than was available when it was planned;
// else empty.
std::string believedBudget(const RunSetup& setup);

PlanReport reportOf(const RunSetup& setup);

// That this run's FP8 products are emulated, as a sentence; empty where they are not.
std::string emulationNote(const RunSetup& setup);

} // namespace mr
