// StepLayout: the parts of a plan that follow from the StepSpec and stay the same from step to
// step.
//
// Threads  A value.

#pragma once

#include "core/plan/boundary_homes.h"
#include "core/plan/columns.h"
#include "core/plan/memory_plan.h"
#include "core/plan/plan_terms.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mr {

struct StepLayout {
    StepSpec spec;
    bool valid = false;
    int inFlight = 1;
    std::vector<WorkItem> order;
    std::array<std::size_t, 3> peakBytes{};
    GradientHomes gradients;
    std::int64_t stateTileElements = 0;
    int stateSlots = 0;
    WindowLayout window;
    int weightSlots = 0;
    bool savesBoundaries = false;
    bool passesTwice = false;
    bool probes = false; // StepPlan::probes
    BoundaryHomes boundaries;
    ActivationTurns activations;

    // Asks the policy, unless the last request was the same. An evaluation (`training` false)
    // visits one micro-batch after the other under every policy.
    Status layOut(const PlanTerms& terms, const StepSpec& asked, bool training);

private:
    void take(MemoryPlan&& memory);
};

} // namespace mr
