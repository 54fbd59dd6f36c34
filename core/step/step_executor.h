// StepExecutor: carries out a StepPlan.
//
// It enqueues the tasks of a plan in order, each on the lane the plan names, with the waits the
// plan names, and knows nothing of policies. PassTasks, UpdateTasks, DiskTasks and WindowSteps know
// the work of each kind of task. Every task is timed; run() ends when all lanes are idle.
//
// Threads    Engine thread. Reads of the result of run() from the same thread.
// Ownership  Borrows device, memory, config and table, which outlive it, and updater and store.
// Lifetime   Updater and store end first: their jobs point to events and gates of this.
// Errors     Those of the device, unchanged; Internal for a task this build cannot carry out.
// Order      Nothing is allocated in run() once prepare() has seen a plan at least as large.

#pragma once

#include "core/step/blocking_copier.h"
#include "core/step/constant_tables.h"
#include "core/step/decoder.h"
#include "core/step/disk_tasks.h"
#include "core/step/forward_probes.h"
#include "core/step/pass_tasks.h"
#include "core/step/run_memory.h"
#include "core/step/run_window.h"
#include "core/step/state_access.h"
#include "core/step/step_inputs.h"
#include "core/step/step_lanes.h"
#include "core/step/update_tasks.h"
#include "core/telemetry/stall_ledger.h"

#include <millrace/status.h>

#include <memory>
#include <span>
#include <vector>

namespace mr {

struct StepResult {
    std::int64_t beginNs = 0;
    std::int64_t endNs = 0;
    double lossSum = 0.0;  // over trained tokens, by micro-batch index
    StepScalars scalars;   // as the host received them: of all groups
    int skippedGroups = 0; // their updates did nothing, because a gradient was not finite
    std::int64_t h2dBytes = 0;
    std::int64_t d2hBytes = 0;
    // Among these, each way: columns that changed owner. Their lists, 4 bytes a column, are not
    // counted.
    std::int64_t movedBytes = 0;
    // Whole pages, including those of tiles that moved because columns changed owner.
    std::int64_t diskReadBytes = 0;
    std::int64_t diskWrittenBytes = 0;
    std::span<const Interval> tasks; // by index of the plan; valid until the next run()
};

class StepExecutor
{
public:
    // `updater` may be null where no plan has a task on the Host lane, `disk` where none has one
    // on the disk's.
    static Result<std::unique_ptr<StepExecutor>> create(Device& device, RunMemory& memory,
        const ModelConfig& config, const ParamTable& table, HostUpdater* updater,
        DiskStore* disk = nullptr);

    // Before the first step: fills constants. Moments, sums and the gaps between slots of gradients
    // are zero already, because Device::allocate() gives zeroed memory. Blocks.
    Status prepareMemory();
    // Makes bytes on the device zero. Blocks. Not during run().
    Status clear(std::span<std::byte> onDevice);
    // Makes the events a plan of this size needs.
    Status prepare(const StepPlan& plan);

    Result<StepResult> run(const StepPlan& plan, const StepInputs& inputs);

    // Whether the last run() came to a task that changes weights, state or gradients that wait to
    // become part of them. After a run() that failed: false means that they are as before it.
    bool mayHaveChanged() const noexcept { return m_mayHaveChanged; }
    // Lets all enqueued work run to its end and waits for it; drops its errors. After a run() that
    // failed, before anything is read or freed.
    void drain() noexcept { m_parts.lanes->drain(); }

    // The tile of the disk that was changed last between steps goes back now, not in the next
    // run(). Blocks. Not during run().
    Status settleDisk() { return m_parts.disk ? m_parts.disk->flush() : Status(); }
    // All that was moved since create(), between steps, too. Whole pages.
    DiskTasks::Moved diskMoved() const noexcept;

    // Between steps.
    StateAccess& state() noexcept { return m_state; }
    BlockingCopier& copier() noexcept { return *m_parts.copier; }
    ConstantTables& constants() noexcept { return m_constants; }
    Decoder& decoder() noexcept { return m_decoder; }
    RunWindow* window() noexcept { return m_window.get(); } // null: the policy has none

private:
    struct Parts {
        std::unique_ptr<DiskTasks> disk; // null: nothing is on disk
        std::unique_ptr<StepLanes> lanes;
        std::unique_ptr<BlockingCopier> copier;
    };

    StepExecutor(Device& device, RunMemory& memory, const ModelConfig& config,
        const ParamTable& table, Parts parts);
    Status beginStep(const StepPlan& plan, const StepInputs& inputs);
    Status enqueue(const StepPlan& plan, TaskIndex index, const StepInputs& inputs);
    Status enqueueWork(const StepPlan& plan, TaskIndex index, const StepInputs& inputs);
    Status submitHostUpdate(const StepPlan& plan, TaskIndex index, const StepInputs& inputs);
    void collect(const StepPlan& plan, StepResult& result);
    Status finishWindow(const StepPlan& plan, const StepInputs& inputs, StepResult& result);
    void countDisk(StepResult& result);

    Device& m_device;
    RunMemory& m_memory;
    const ModelConfig& m_config;
    LinkBytes m_traffic; // in the step that runs
    Parts m_parts;
    StateAccess m_state;
    ConstantTables m_constants;
    Decoder m_decoder;
    ForwardProbes m_probes;
    PassTasks m_passes;
    UpdateTasks m_updates;
    std::unique_ptr<RunWindow> m_window;
    std::vector<Interval> m_intervals;
    bool m_mayHaveChanged = false;
};

} // namespace mr
