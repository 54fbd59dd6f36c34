#include "core/engine/run_body.h"

#include <algorithm>

namespace mr {

Result<std::unique_ptr<RunBody>> RunBody::create(
    Device& device, const RunSetup& setup, Tier& lacking)
{
    auto body = std::unique_ptr<RunBody>(new RunBody);
    MR_TRY(body->build(device, setup, lacking));
    return body;
}

RunBody::~RunBody()
{
    if (m_executor)
        m_executor->drain();
}

Status RunBody::build(Device& device, const RunSetup& setup, Tier& lacking)
{
    auto tiers = TierStore::create(device, setup.memory, &lacking);
    MR_TRY(tiers.status());
    m_tiers = std::move(tiers).value();
    lacking = Tier::Device; // what is made from here on is the device's
    auto memory = RunMemory::create(*m_tiers, setup.config, setup.table, setup.micro,
        setup.microsInFlight(), setup.batchBuffers(), setup.step.recompute);
    MR_TRY(memory.status());
    m_memory = std::move(memory).value();
    if (!m_memory->group(GroupId{0}).stateOnDevice) {
        const std::int64_t threads = std::max<std::int64_t>(1, setup.spec.threads / 2);
        m_updater = std::make_unique<HostUpdater>(static_cast<int>(threads), m_latch);
    }
    auto executor =
        StepExecutor::create(device, *m_memory, setup.config, setup.table, m_updater.get());
    MR_TRY(executor.status());
    m_executor = std::move(executor).value();
    MR_TRY(m_executor->prepareMemory());
    const RunSpec& spec = setup.spec;
    m_plans.emplace(PlanSequenceParts{setup.shape, setup.budget, setup.rates, setup.policy,
                        *m_memory, *m_executor},
        AdamwSettings{spec.beta1, spec.beta2, spec.eps, spec.weightDecay},
        LrSchedule{spec.schedule, spec.learningRate, spec.warmupSteps, spec.steps});
    return {};
}

bool RunBody::settle(StepIndex done)
{
    m_executor->drain();
    if (m_executor->mayHaveChanged() || m_latch.failed())
        return false;
    m_plans->returnTo(done);
    return true;
}

void RunBody::abandon(const Status& why) noexcept
{
    m_latch.fail(why);
    m_executor->drain();
}

} // namespace mr
