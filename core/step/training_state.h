// TrainingState: the parts of a run that make steps: its memory, its executor, its pool and its
// plans.
//
// Apart from the Engine, which is the run's life, so that it can be torn down and made again by
// another plan while the run goes on.
//
// Threads    Engine thread.
// Ownership  Owns all it made; borrows the device and its parts, none of which may change while it
//            lives.
// Errors     create(): those of the device; of OutOfMemory `lacking` says in which tier.
// Lifetime   The destructor ends work that a failed step left behind and frees everything.

#pragma once

#include "core/base/failure_latch.h"
#include "core/optim/host_updater.h"
#include "core/step/plan_sequence.h"
#include "core/step/run_disk.h"
#include "core/step/run_memory.h"
#include "core/step/step_executor.h"

#include <millrace/status.h>

#include <memory>
#include <optional>

namespace mr {

// All but numbers is lent and outlives the body.
struct TrainingStateParts {
    const ModelConfig& config;
    const ParamTable& table;
    const MicroShape& micro;
    const ModelShape& shape;
    const StepSpec& step; // common to all steps, except its number
    const OffloadPolicy& policy;
    const Budget& budget;
    const Feedback& rates;
    const MemoryPlan& memory;
    int updateThreads = 1;
    AdamwSettings adamw;
    LrSchedule schedule;
    const RunDiskSpec* disk = nullptr; // lent; needed where the plan keeps something on disk
    AddedApart apart = {};             // its memory is lent
};

class TrainingState
{
public:
    // Weights are not set. `lacking` is written where memory lacks.
    static Result<std::unique_ptr<TrainingState>> create(
        Device& device, const TrainingStateParts& parts, Tier& lacking);
    ~TrainingState();

    // Goes on with the plan, table and shape of another turn, in the same bytes; no step is in
    // flight. Moments and gradients are zero then, weights are not set. Of no use after an error.
    Status turnTo(const TrainingStateParts& parts);

    RunMemory& memory() noexcept { return *m_memory; }
    StepExecutor& executor() noexcept { return *m_executor; }
    PlanSequence& plans() noexcept { return *m_plans; }
    // Why nothing of this body can be trusted any more: its disk or its pool failed.
    Status failure() const { return m_latch.status(); }
    const DiskStore* disk() const noexcept { return m_disk.get(); } // null: nothing is on disk

    // After a failure: waits for all enqueued work. True: weights and state are those after step
    // `done`, and the run may go on from them or save them.
    bool settle(StepIndex done);
    // Nothing of this is of use any more: host updates that still wait are dropped.
    void abandon(const Status& why) noexcept;

private:
    explicit TrainingState(Device& device)
        : m_device(device)
    {
    }
    Status build(const TrainingStateParts& parts);
    Status clearTrained();

    Device& m_device;
    FailureLatch m_latch;
    std::unique_ptr<TierStore> m_tiers;
    std::unique_ptr<RunMemory> m_memory;
    std::unique_ptr<StepExecutor> m_executor;
    // These go first: their jobs point to the executor's events and gates, and the pool's wait for
    // the disk.
    std::unique_ptr<DiskStore> m_disk;
    std::unique_ptr<HostUpdater> m_updater;
    std::optional<PlanSequence> m_plans;
};

} // namespace mr
