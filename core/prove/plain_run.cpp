#include "core/prove/plain_run.h"

#include "core/base/bytes.h"

#include <utility>

namespace mr {
namespace {

// `remark` follows the sentence.
Status checkFits(
    const char* tier, std::size_t needed, std::size_t budget, const std::string& remark = {})
{
    if (budget == 0 || needed <= budget)
        return {};
    return Status::error(ErrorKind::OutOfMemory, std::string(tier) + ": the plan needs " +
                                                     formatBytes(needed) + ", the budget is " +
                                                     formatBytes(budget) + remark);
}

} // namespace

Result<ParamTable> PlainRun::tableOf(const PlainRunSpec& spec)
{
    ParamTable whole = buildParamTable(spec.config);
    if (spec.adapter)
        return adapterTable(whole, *spec.adapter);
    return spec.layers.empty() ? Result(std::move(whole)) : trainedLayers(whole, spec.layers);
}

PlainRun::PlainRun(PlainRunSpec spec)
    : m_spec(std::move(spec))
{
    m_step.microBatches = static_cast<int>(m_spec.micro.microBatches);
    m_step.clipNorm = m_spec.clipNorm;
    m_step.recompute = m_spec.recompute;
    m_step.precision = m_spec.micro.compute == DType::F32 ? Precision::F32 : Precision::BF16;
}

Status PlainRun::describe()
{
    MR_ASSIGN(m_table, tableOf(m_spec));
    setAdapterMemory(m_table, m_spec.micro.dropout, m_spec.micro);
    m_shape = modelShape(m_spec.config, m_table, m_spec.micro);
    auto policy = makePolicy(m_spec.policy, m_spec.options, m_spec.light);
    MR_TRY(policy.status());
    m_policy = std::move(policy).value();
    if (m_policy.intervalByMagnitude)
        return Status::error(ErrorKind::InvalidArgument,
            "policy option interval=magnitude: only a run that trains can choose it; give a number "
            "of steps");
    MR_ASSIGN(m_plan, planMemory(m_step, m_shape, m_spec.budget, Feedback{}, m_policy));
    m_budget = {
        m_plan.bytes(Tier::Device), m_plan.bytes(Tier::PinnedHost), m_plan.bytes(Tier::Disk)};
    MR_TRY(checkFits("device memory", m_budget.deviceBytes, m_spec.budget.deviceBytes));
    MR_TRY(checkFits(
        "host memory", m_budget.hostBytes, m_spec.budget.hostBytes, hostMemoryWords(m_spec.host)));
    return checkFits("disk space", m_budget.diskBytes, m_spec.budget.diskBytes);
}

Status PlainRun::build(Device& device)
{
    Tier lacking{}; // the budgets were compared
    MR_ASSIGN(m_body, TrainingState::create(device,
                          {m_spec.config, m_table, m_spec.micro, m_shape, m_step, m_policy,
                              m_budget, m_rates, m_plan, m_spec.updateThreads, m_spec.adamw,
                              {ScheduleKind::Constant, m_spec.learningRate, 0, 1}, &m_spec.disk},
                          lacking));
    return {};
}

Result<MemoryPlan> PlainRun::plan(const PlainRunSpec& spec)
{
    PlainRun run(spec);
    MR_TRY(run.describe());
    return std::move(run.m_plan);
}

Result<std::unique_ptr<PlainRun>> PlainRun::create(Device& device, const PlainRunSpec& spec)
{
    auto run = std::unique_ptr<PlainRun>(new PlainRun(spec));
    MR_TRY(run->describe());
    MR_TRY(run->build(device));
    return run;
}

Result<StepResult> PlainRun::step(const StepInputs& inputs)
{
    ++m_step.step;
    PlanSequence& plans = m_body->plans();
    MR_TRY(plans.planStep(m_step).status());
    StepInputs complete = inputs;
    complete.update = m_step.step;
    complete.lastNorm = m_lastNorm;
    plans.addFactors(complete);
    MR_ASSIGN(auto result, executor().run(plans.plan(), complete));
    m_lastNorm = result.scalars.gradNorm;
    return result;
}

} // namespace mr
