// PlanSequence: the plans of a run one after the other, and the numbers that go with them.
//
// Keeps the values that one step leaves for the next (the carry, the factors of the newest update),
// checks the plans that CheckSchedule wants checked, and takes a step back that did not happen.
//
// Threads    Engine thread.
// Ownership  All is lent and outlives this.
// Errors     Those of PlanBuilder and checkPlan(), and of the device in finishLateParts().
// Order      planStep() allocates nothing once every kind of plan was seen.

#pragma once

#include "core/optim/lr_schedule.h"
#include "core/plan/plan_builder.h"
#include "core/step/check_schedule.h"
#include "core/step/step_executor.h"

#include <millrace/status.h>

#include <functional>
#include <optional>

namespace mr {

// Called with a plan that was carried out outside of a step, and how.
using RunWatch = std::function<void(const StepPlan&, const StepResult&)>;

struct PlanSequenceParts {
    const ModelShape& shape;
    const Budget& budget;
    const Feedback& rates;
    const OffloadPolicy& policy;
    RunMemory& memory;
    StepExecutor& executor;
};

class PlanSequence
{
public:
    PlanSequence(const PlanSequenceParts& parts, const AdamwSettings& adamw, LrSchedule schedule);

    // As if the run had come as far as `carry` says. A default one: before the first step.
    void startAfter(const Carry& carry);

    // The plan of the next step. True: it was checked, so it is new of its kind and may be larger.
    Result<bool> planStep(const StepSpec& spec);
    // `inputs.factors` are of the step that was planned; fills in all others.
    void addFactors(StepInputs& inputs);
    // The step has nothing to learn from: the next one gets its carry.
    void skipStep(StepIndex step);
    // Step `done` is the last that happened: takes back the plan after it. Precondition: that plan
    // has begun no update.
    void returnTo(StepIndex done);

    Status planEvaluation(const StepSpec& spec, StepPlan& out);
    // Makes the updates that the last step left for the next one, before anybody looks at weights.
    // Exact: the next step would have made the same.
    Status finishLateParts(const RunWatch& watch = {});
    // Only for the final export, after which no step may follow (WindowCheckpoint::applyPending).
    Status applyPending(double clipNorm);

    const StepPlan& plan() const noexcept { return m_built.plan; } // the last step's
    const Carry& carry() const noexcept { return m_built.out; }    // left by it

private:
    void addWindowFactors(int closing, const std::optional<HostJob>& job, StepInputs& inputs) const;

    PlanSequenceParts m_parts;
    AdamwSettings m_adamw;
    LrSchedule m_schedule;
    PlanBuilder m_builder;
    CheckSchedule m_checks;
    BuiltStep m_built;
    BuiltStep m_flush;
    Carry m_before;         // into the step that was planned
    AdamwFactors m_newest;  // for the newest version
    AdamwFactors m_earlier; // for the one before
};

} // namespace mr
