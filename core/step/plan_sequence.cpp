#include "core/step/plan_sequence.h"

#include "core/device/clip_factor.h"
#include "core/plan/plan_check.h"

#include <algorithm>

namespace mr {

PlanSequence::PlanSequence(
    const PlanSequenceParts& parts, const AdamwSettings& adamw, LrSchedule schedule)
    : m_parts(parts)
    , m_adamw(adamw)
    , m_schedule(schedule)
    , m_builder(parts.shape, parts.budget, parts.rates, parts.policy)
{
}

void PlanSequence::startAfter(const Carry& carry)
{
    m_built.out = carry;
    m_before = carry;
}

Result<bool> PlanSequence::planStep(const StepSpec& spec)
{
    m_before = m_built.out;
    m_earlier = m_newest;
    MR_TRY(m_builder.buildPlanInto(spec, m_before, m_parts.rates, m_built));
    if (!m_checks.wants(m_built.plan, m_before))
        return false;
    MR_TRY(checkPlan(
        m_built.plan, m_before, m_built.out, m_parts.shape, m_parts.budget, m_parts.policy));
    return true;
}

void PlanSequence::addFactors(StepInputs& inputs)
{
    inputs.before = m_earlier;
    m_newest = inputs.factors;
    inputs.light = lightFactors(
        learningRate(m_schedule, m_built.plan.step - 1), m_adamw.weightDecay, inputs.update);
    if (m_parts.policy.clipMode == ClipMode::PreviousNorm)
        inputs.light.clipFactor = clipFactorOf(inputs.lastNorm, inputs.clipNorm);
    if (!clipsByOwnNorm(m_parts.policy.clipMode))
        inputs.clipNorm = 0.0;
    addWindowFactors(m_built.plan.window.before + 1, m_before.hostJob, inputs);
}

// Two counts: the device's columns have one update per step, the host's one per window. `closing`:
// steps of a window that is closed in its own last one, or by the final export.
void PlanSequence::addWindowFactors(
    int closing, const std::optional<HostJob>& job, StepInputs& inputs) const
{
    RunWindow* window = m_parts.executor.window();
    if (!window)
        return;
    const WindowLayout& layout = m_parts.memory.window->layout();
    std::int64_t count = window->updates().state.hostUpdates;
    const auto factors = [&](StepIndex version, int steps) {
        const int stride = layout.stride(steps);
        const double factor = steps > 1 ? m_parts.policy.hostLearningRate * stride : 1.0;
        count += stride;
        return adamwFactors(m_adamw, factor * learningRate(m_schedule, version - 1), count, stride);
    };
    if (job)
        inputs.job = factors(job->version, layout.steps);
    inputs.closing = factors(m_built.out.step, std::max(1, closing));
}

void PlanSequence::skipStep(StepIndex step)
{
    m_built.out.step = step;
    if (auto& job = m_built.out.hostJob)
        ++job->dueStep;
}

void PlanSequence::returnTo(StepIndex done)
{
    if (m_built.out.step != done) {
        m_built.out = m_before;
        m_newest = m_earlier;
    }
    m_built.out.heldSlots.clear(); // what failed may have used them
}

Status PlanSequence::planEvaluation(const StepSpec& spec, StepPlan& out)
{
    m_built.out.heldSlots.clear(); // it uses them
    return m_builder.buildEvaluationInto(spec, m_built.out, m_parts.rates, out);
}

Status PlanSequence::finishLateParts(const RunWatch& watch)
{
    if (m_built.out.pending.empty())
        return {};
    MR_TRY(m_builder.buildFlushInto(m_built.out, m_flush));
    MR_TRY(checkPlan(
        m_flush.plan, m_built.out, m_flush.out, m_parts.shape, m_parts.budget, m_parts.policy));
    StepInputs inputs;
    inputs.factors = m_newest;
    MR_ASSIGN(auto result, m_parts.executor.run(m_flush.plan, inputs));
    m_built.out = m_flush.out;
    if (watch)
        watch(m_flush.plan, result);
    return {};
}

Status PlanSequence::applyPending(double clipNorm)
{
    StepInputs inputs;
    inputs.clipNorm = clipNorm;
    addWindowFactors(m_built.out.stepsIntoWindow, m_built.out.hostJob, inputs);
    RunWindow* window = m_parts.executor.window();
    return window ? window->checkpoint().applyPending(m_built.out, inputs) : Status();
}

} // namespace mr
