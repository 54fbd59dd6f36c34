#include "core/step/training_state.h"

#include "core/plan/traversal.h"

#include <utility>

namespace mr {

Result<std::unique_ptr<TrainingState>> TrainingState::create(
    Device& device, const TrainingStateParts& parts, Tier& lacking)
{
    auto body = std::unique_ptr<TrainingState>(new TrainingState(device));
    MR_ASSIGN(body->m_tiers, TierStore::create(device, parts.memory, &lacking));
    lacking = Tier::Device; // from here on only the device may lack memory
    MR_TRY(body->build(parts));
    return body;
}

TrainingState::~TrainingState()
{
    if (m_executor)
        m_executor->drain();
}

Status TrainingState::turnTo(const TrainingStateParts& parts)
{
    m_executor->drain();
    m_plans.reset();
    m_updater.reset();
    m_disk.reset();
    m_executor.reset();
    m_memory.reset();
    MR_TRY(m_tiers->takePlan(parts.memory));
    MR_TRY(build(parts));
    return clearTrained();
}

// Gaps between slots of gradients stay zero in every turn.
Status TrainingState::clearTrained()
{
    for (const MemoryItem& item : m_tiers->plan().items) {
        const bool isOfTraining =
            item.use == MemoryUse::FirstMoments || item.use == MemoryUse::SecondMoments ||
            item.use == MemoryUse::Accumulators || item.use == MemoryUse::SecondAccumulator ||
            item.use == MemoryUse::Gradients;
        if (isOfTraining && item.tier == Tier::Device)
            MR_TRY(m_executor->clear(m_tiers->find(item.tier, item.use, item.group)));
    }
    return {};
}

Status TrainingState::build(const TrainingStateParts& parts)
{
    const int layers = parts.shape.layers();
    const int micros = parts.step.microBatches;
    auto memory = RunMemory::create(*m_tiers, parts.config, parts.table, parts.micro,
        microBatchesInFlight(*parts.policy.traversal, layers, micros),
        batchBuffers(parts.policy, layers, micros), parts.step.recompute);
    MR_TRY(memory.status());
    m_memory = std::move(memory).value();
    m_memory->apart = parts.apart;
    const bool onHost = parts.memory.bytes(Tier::PinnedHost, MemoryUse::HighPlane) > 0 &&
                        !isLight(parts.policy.optimizer);
    if (onHost || parts.memory.usesScratch())
        m_updater = std::make_unique<HostUpdater>(parts.updateThreads, m_latch);
    if (parts.memory.usesDisk()) {
        const RunDiskSpec disk = parts.disk ? *parts.disk : RunDiskSpec{};
        MR_ASSIGN(m_memory->frozenPieces,
            FrozenPieces::cut(parts.memory, parts.shape, sizeOf(parts.micro.compute), disk.base));
        MR_ASSIGN(m_disk, openRunDisk(parts.memory, disk,
                              {m_memory->disk().all(), m_memory->frozenPieces}, m_latch));
    }
    MR_ASSIGN(m_executor, StepExecutor::create(m_device, *m_memory, parts.config, parts.table,
                              m_updater.get(), m_disk.get()));
    MR_TRY(m_executor->prepareMemory());
    m_plans.emplace(PlanSequenceParts{parts.shape, parts.budget, parts.rates, parts.policy,
                        *m_memory, *m_executor},
        parts.adamw, parts.schedule);
    return {};
}

bool TrainingState::settle(StepIndex done)
{
    m_executor->drain();
    if (m_executor->mayHaveChanged() || m_latch.failed())
        return false;
    m_plans->returnTo(done);
    return true;
}

void TrainingState::abandon(const Status& why) noexcept
{
    m_latch.fail(why);
    m_executor->drain();
}

} // namespace mr
