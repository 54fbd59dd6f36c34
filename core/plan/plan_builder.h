// PlanBuilder: buildPlan() for every step of a run, without allocating after the first.
//
// It asks the policy and lets emitters, one for each idea, write their tasks in the order of the
// step. The policy's answers that fill vectors (order of work, placement) are pure, and a run's
// shape, budget and chosen rates do not change, so it asks for them once. It asks the clock and the
// router in every step.
//
// Threads    One owner; the engine thread.
// Ownership  Shape and policy are lent and must outlive the builder.
// Errors     InvalidArgument if a spec or an answer asks for something that is not built; Internal
//            for a carry that does not fit the step.

#pragma once

#include "core/plan/cost_model.h"
#include "core/plan/disk_emitter.h"
#include "core/plan/gradient_emitter.h"
#include "core/plan/layer_emitter.h"
#include "core/plan/plan_terms.h"
#include "core/plan/plan_writer.h"
#include "core/plan/step_layout.h"
#include "core/plan/step_updates.h"
#include "core/plan/stream_emitter.h"
#include "core/plan/update_emitter.h"
#include "core/plan/weight_slots.h"
#include "core/plan/window_emitter.h"

namespace mr {

class PlanBuilder
{
public:
    // `chosen` are the rates the placement was or is chosen by.
    PlanBuilder(const ModelShape& shape, const Budget& budget, const Feedback& chosen,
        const OffloadPolicy& policy);
    PlanBuilder(const PlanBuilder&) = delete; // emitters know each other
    PlanBuilder& operator=(const PlanBuilder&) = delete;

    // The functions of policy.h, into values that keep their memory from call to call. `in` may be
    // `out.out` of the call before. `last` only serves the forecast (StepPlan::predicted).
    Status buildPlanInto(
        const StepSpec& spec, const Carry& in, const Feedback& last, BuiltStep& out);
    Status buildFlushInto(const Carry& in, BuiltStep& out);
    // Micro-batches follow each other under every policy: no number depends on the order, and this
    // one needs the least memory.
    Status buildEvaluationInto(
        const StepSpec& spec, const Carry& in, const Feedback& last, StepPlan& out);

private:
    Status begin(StepIndex step, const Carry& in, DiskSends sends, StepPlan& plan);
    Status readAnswers();
    Status keepNorm(StepIndex step, BuiltStep& out) const;
    Status emitStep(Carry& out);
    Status emitWindowStep(Carry& out);
    Status emitLayers();
    Status emitSecondPass();
    void updateByProbes();
    void emitFinishedGradient(GroupId group);
    void forecast(const StepLayout& layout, const Feedback& last);

    const PlanTerms m_terms;
    StepLayout m_training;
    StepLayout m_evaluation;
    StepForecaster m_forecaster;
    bool m_reselects = false; // columns change owner at the end of the plan being built

    PlanWriter m_writer;
    WeightSlots m_slots;
    DiskEmitter m_disk;
    GradientEmitter m_gradients;
    UpdateEmitter m_updates;
    StreamEmitter m_stream;
    LayerEmitter m_layers;
    StepUpdates m_stepUpdates;
    WindowEmitter m_window;
};

} // namespace mr
