#include "core/engine/plain_run.h"

#include "core/base/bytes.h"
#include "core/plan/plan_check.h"
#include "core/plan/traversal.h"

#include <utility>

namespace mr {
namespace {

Status checkFits(const char* tier, std::size_t needed, std::size_t budget)
{
    if (budget == 0 || needed <= budget)
        return {};
    return Status::error(ErrorKind::OutOfMemory, std::string(tier) + " memory: the plan needs " +
                                                     formatBytes(needed) + ", the budget is " +
                                                     formatBytes(budget));
}

} // namespace

PlainRun::PlainRun(PlainRunSpec spec)
    : m_spec(std::move(spec))
    , m_table(buildParamTable(m_spec.config))
    , m_shape(modelShape(m_spec.config, m_table, m_spec.micro))
{
    m_step.microBatches = static_cast<int>(m_spec.micro.microBatches);
    m_step.clipNorm = m_spec.clipNorm;
    m_step.recompute = m_spec.recompute;
    m_step.precision = m_spec.micro.compute == DType::F32 ? Precision::F32 : Precision::BF16;
}

Status PlainRun::describe()
{
    auto policy = makePolicy(m_spec.policy, m_spec.options);
    MR_TRY(policy.status());
    m_policy = std::move(policy).value();
    auto plan = planMemory(m_step, m_shape, m_spec.budget, Feedback{}, m_policy);
    MR_TRY(plan.status());
    m_plan = std::move(plan).value();
    m_budget = {m_plan.bytes(Tier::Device), m_plan.bytes(Tier::PinnedHost), 0};
    MR_TRY(checkFits("device", m_budget.deviceBytes, m_spec.budget.deviceBytes));
    return checkFits("host", m_budget.hostBytes, m_spec.budget.hostBytes);
}

Status PlainRun::build(Device& device)
{
    auto tiers = TierStore::create(device, m_plan);
    MR_TRY(tiers.status());
    m_tiers = std::move(tiers).value();
    const int micros = m_step.microBatches;
    auto memory = RunMemory::create(*m_tiers, m_spec.config, m_table, m_spec.micro,
        microBatchesInFlight(*m_policy.traversal, m_shape.layers(), micros),
        batchBuffers(m_policy, m_shape.layers(), micros), m_spec.recompute);
    MR_TRY(memory.status());
    m_memory = std::move(memory).value();
    m_updater = std::make_unique<HostUpdater>(m_spec.updateThreads, m_latch);
    auto executor =
        StepExecutor::create(device, *m_memory, m_spec.config, m_table, m_updater.get());
    MR_TRY(executor.status());
    m_executor = std::move(executor).value();
    m_builder.emplace(m_shape, m_budget, Feedback{}, m_policy);
    return m_executor->prepareMemory();
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
    constexpr StepIndex kChecked = 2;
    ++m_step.step;
    const Carry in = m_built.out;
    MR_TRY(m_builder->buildPlanInto(m_step, in, Feedback{}, m_built));
    if (m_step.step <= kChecked)
        MR_TRY(checkPlan(m_built.plan, in, m_built.out, m_shape, m_budget, m_policy));
    StepInputs complete = inputs;
    complete.before = std::exchange(m_factors, inputs.factors);
    if (const WindowTasks* window = m_executor->window()) {
        const auto factors = [&](bool isOneStep, std::int64_t count) {
            const double factor = isOneStep ? 1.0 : m_policy.hostLearningRate;
            return adamwFactors(m_spec.adamw, factor * m_spec.learningRate, count);
        };
        const std::int64_t count = window->state.hostUpdates + 1;
        complete.job = factors(m_memory->window->layout().steps == 1, count);
        complete.closing = factors(m_built.plan.window.before <= 0, count + (in.hostJob ? 1 : 0));
    }
    return m_executor->run(m_built.plan, complete);
}

Status PlainRun::finishLateParts()
{
    if (m_built.out.pending.empty())
        return {};
    BuiltStep flush;
    MR_TRY(m_builder->buildFlushInto(m_built.out, flush));
    MR_TRY(checkPlan(flush.plan, m_built.out, flush.out, m_shape, m_budget, m_policy));
    StepInputs inputs;
    inputs.factors = m_factors;
    auto result = m_executor->run(flush.plan, inputs);
    MR_TRY(result.status());
    m_built.out = flush.out;
    return {};
}

} // namespace mr
