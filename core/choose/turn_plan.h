// Groups of weights that take turns (RunSpec::train): their schedule, and plans that serve all of
// them.
//
// Memory is planned for the turns that need most, together (core/plan/turn_memory.h), and time for
// one in the middle: a turn costs the more, the lower its group.
//
// Threads  Pure.
// Errors   InvalidArgument names the option, what is wrong and the way out.

#pragma once

#include "core/model/model_config.h"
#include "core/model/param_table.h"
#include "core/optim/turn_schedule.h"
#include "core/plan/memory_plan.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace mr {

struct RunSetup;

struct TurnPlan {
    TurnSchedule schedule; // not active: all that is trained is trained in every step
    GroupId trained;       // the group of RunSetup's table, shape and memory
    std::shared_ptr<const ParamTable> model; // all of it, in every turn
    std::vector<GroupId> largest;            // turns that need the most memory
    std::vector<ModelShape> shapes;          // of those
    ModelShape usual;                        // of a turn in the middle of the model

    bool isActive() const noexcept { return schedule.isActive(); }
};

// The turns of a run whose sizes are resolved, and the setup for the lowest group.
Status setUpTurns(RunSetup& setup);

// Table, shape and memory of the setup for the turn of this group.
Status takeTurn(RunSetup& setup, GroupId group);

// The memory of a run by this policy: of all turns, with cuts for the present one.
Result<MemoryPlan> runMemory(
    const RunSetup& setup, const StepSpec& step, const OffloadPolicy& policy);

// The shape that a forecast is made for.
const ModelShape& forecastShape(const RunSetup& setup) noexcept;

// The table of which the frozen blocks are read from files: with turns every block is, sooner or
// later.
ParamTable readTable(const RunSetup& setup);

// All of the model. Readers borrow it over turns.
const ParamTable& modelOf(const RunSetup& setup) noexcept;

// All parameters that are trained at any time.
ParamTable everTrained(const RunSetup& setup);

// Bytes of a group between two of its turns, in a file: F32, in halves.
std::uint64_t turnFileBytes(const RunSetup& setup);

} // namespace mr
