// StepExecutor: carries out a StepPlan. The only code that touches streams.
//
// It enqueues the tasks of a plan in order, each on the lane the plan names, with the waits the
// plan names, and knows nothing of policies. Every task is timed by two events; run() ends when
// all lanes are idle.
//
// Threads    Engine thread. Reads of the result of run() from the same thread.
// Ownership  Borrows device, memory, config, table and updater, which outlive it.
// Errors     Those of the device, unchanged; Internal for a task this build cannot carry out.
// Order      Nothing is allocated in run() once prepare() has seen a plan at least as large.

#pragma once

#include "core/data/batch_stream.h"
#include "core/device/device.h"
#include "core/device/ops.h"
#include "core/model/master.h"
#include "core/optim/host_updater.h"
#include "core/plan/plan.h"
#include "core/step/disk_tasks.h"
#include "core/step/run_memory.h"
#include "core/step/window_steps.h"
#include "core/telemetry/stall_ledger.h"

#include <millrace/status.h>

#include <memory>
#include <span>
#include <vector>

namespace mr {

// What a plan does not hold: numbers.
struct StepInputs {
    std::span<const MicroBatchData> micros;
    float lossScale = 1.0F; // 1 / trained tokens of the step
    double clipNorm = 0.0;  // 0: off
    AdamwFactors factors;   // of the version of the plan's step
    AdamwFactors before;    // of the version before it: late updates
    // Of the host's columns: the window in flight, and the one that ends with this step.
    AdamwFactors job;
    AdamwFactors closing;
};

struct StepResult {
    std::int64_t beginNs = 0;
    std::int64_t endNs = 0;
    double lossSum = 0.0;  // over trained tokens, by micro-batch index
    StepScalars scalars;   // as the host received them: of all groups
    int skippedGroups = 0; // whose updates did nothing, because a gradient was not finite
    std::int64_t h2dBytes = 0;
    std::int64_t d2hBytes = 0;
    // Of these, each way: columns that changed owner. Their lists, 4 bytes a column, are not
    // counted.
    std::int64_t movedBytes = 0;
    // Whole pages, those of tiles that came and went because columns changed owner among them.
    std::int64_t diskReadBytes = 0;
    std::int64_t diskWrittenBytes = 0;
    std::span<const Interval> tasks; // by index of the plan; valid until the next run()
};

// Optimizer state of a range, as ops take it.
struct StateViews {
    std::array<TensorView, kStateParts> planes; // empty where the codec has none

    const TensorView& of(StatePart part) const noexcept
    {
        return planes[static_cast<std::size_t>(part)];
    }
};

class StepExecutor
{
public:
    // `updater` may be null where no plan has a task on the Host lane, `disk` where none has one
    // on the disk's.
    static Result<std::unique_ptr<StepExecutor>> create(Device& device, RunMemory& memory,
        const ModelConfig& config, const ParamTable& table, HostUpdater* updater,
        DiskStore* disk = nullptr);
    ~StepExecutor();

    // Makes the events a plan of this size needs.
    Status prepare(const StepPlan& plan);

    Result<StepResult> run(const StepPlan& plan, const StepInputs& inputs);

    // The tile of the disk that was changed last between steps goes back now, not in the next
    // run(). Blocks. Not during run().
    Status settleDisk() { return m_disk ? m_disk->flush() : Status(); }
    // All that was moved since create(), between steps, too. Whole pages.
    DiskTasks::Moved diskMoved() const noexcept
    {
        return m_disk ? m_disk->allMoved() : DiskTasks::Moved{};
    }

    // Whether the last run() came to a task that changes weights, state or what waits to become
    // part of them. After a run() that failed: false means that they are as before it.
    bool mayHaveChanged() const noexcept { return m_mayHaveChanged; }
    // Lets what was enqueued run to its end and waits for it; errors of it are dropped. After a
    // run() that failed, before anything is read or freed.
    void drain() noexcept;

    // Values of a state part (state_codec.h) from `first` on, from or to wherever the policy keeps
    // it, through the staging buffer. Blocks. Not during run().
    Status readState(GroupId group, StatePart part, std::int64_t first, std::span<std::byte> out);
    Status writeState(
        GroupId group, StatePart part, std::int64_t first, std::span<const std::byte> in);

    // Puts the group's master, from element `first` on (a multiple of kCutElements), into the
    // planes that keep it, by the run's codec. Blocks.
    Status writeMaster(GroupId group, std::int64_t first, const MasterView& master);
    // Makes the weights that ops read from the same. Blocks.
    Status uploadWeights(GroupId group, std::int64_t first, const MasterView& master);
    // What must hold before the first step: rope tables, moments and the gaps between slots of
    // gradients at zero. Blocks.
    Status prepareMemory();

    // The rotary tables become those of sequences of so many tokens, where the model's depend on
    // that; after prepareMemory() they are those of the longest there is room for. True: they
    // changed, and keys that were kept are of no use. Blocks. Not during run().
    Result<bool> turnFor(std::int64_t tokens);

    // Null where the policy has no windows.
    WindowTasks* window() noexcept { return m_window.get(); }
    // WindowTasks::publish and its neighbours: nothing to do where the device owns no columns.
    // Block.
    Status publishColumns();
    Status adoptColumns(bool areApart);
    Status installColumns(MasterReader& master);
    Status readColumns(GroupId group, std::int64_t first, const MasterView& out);
    // For the final export, after which no step may follow: WindowTasks::applyPending.
    Status applyPending(const Carry& carry, const StepInputs& inputs);
    // Bytes between host memory and device; blocks.
    Status copyBlocking(std::byte* to, const std::byte* from, std::size_t bytes, bool toDevice);

    // Generation: runs `tokens` at positions first, first + 1, ... through the model, keeping
    // projections in the memory's keyValueCache, and returns the logits of the last. Blocks.
    Status advance(std::span<const TokenId> tokens, std::int64_t first, std::span<float> logits);
    // After run() of an evaluation of one micro-batch: the logits behind a row of it. Blocks.
    Status logitsAt(std::int64_t row, std::span<float> logits);

private:
    struct DecayRun { // a range of a group in which weight decay is the same
        std::int64_t first = 0;
        std::int64_t count = 0;
        bool decayed = false;
    };
    struct Range { // of elements
        std::int64_t first = 0;
        std::int64_t count = 0;
    };
    struct TaskEvents {
        std::unique_ptr<Event> begin;
        std::unique_ptr<Event> end;
        // Of a task on the Host lane, or on the disk's.
        HostUpdateTimes hostTimes;
        DiskTimes diskTimes;
        std::vector<HostUpdateRange> ranges; // lent to the updater until the gate opens
        WindowWork work;                     // the same, for policies with windows
        std::uint64_t generation = 0;        // of the lane's gate; 0: its lane is a stream
    };

    StepExecutor(Device& device, RunMemory& memory, const ModelConfig& config,
        const ParamTable& table, HostUpdater* updater);
    void findDecayRuns();
    void findGaps();
    Status copyConstants();
    Status clearGaps(GroupId group, Stream& stream);
    static Status refuse(const Task& task);

    Status fillHostBatches(const StepInputs& inputs);
    Status enqueue(const StepPlan& plan, TaskIndex index, const StepInputs& inputs);
    Status waitFor(const StepPlan& plan, const Task& task, Stream& stream);
    Gate& gateOf(Lane lane);
    Status waitForGate(Lane lane, std::uint64_t generation);
    Status submitDiskTask(const StepPlan& plan, TaskIndex index);
    Result<DiskAfter> afterOf(const StepPlan& plan, const Task& task);
    Status enqueueWork(const Task& task, const StepInputs& inputs, Stream& stream);
    Status enqueueForward(const Task& task, Stream& stream);
    Status enqueueBackward(const Task& task, const StepInputs& inputs, Stream& stream);
    Status backwardHeadTask(
        const Task& task, const StepInputs& inputs, const LayerContext& context);
    Status enqueueCopy(const Task& task, Stream& stream);
    Status sendScalars(const Task& task, Stream& stream);
    Status moveBoundary(const Task& task, Stream& stream);
    Status moveActivations(const Task& task, Stream& stream);
    Status fetchWeights(const Task& task, Stream& stream);
    Status sendWeights(const Task& task, Stream& stream);
    template <typename F>
    static Status forParts(const GroupMemory& group, F&& fn);
    Status finishGradient(const Task& task, Stream& stream);
    Status normPart(const Task& task, Stream& stream);
    Status joinNorm(const Task& task, const StepInputs& inputs, Stream& stream);
    TensorView normBlocksOf(GroupId group, std::int64_t first, std::int64_t count) const;
    // What an update of the group reads (StepPlan::normByGroup), on the device or on the host.
    TensorView scalarsFor(const ScalarViews& views, GroupId group) const
    {
        return m_normByGroup ? views.scalarsOf(group) : views.scalars;
    }
    int countSkipped(const StepScalars& ofTheStep) const;
    bool isWeights(const GroupMemory& group, StatePart part) const;
    TensorView gradientOnDevice(const Task& task, std::int64_t first, std::int64_t count) const;
    StateViews stateOnDevice(const Task& task, std::int64_t first, std::int64_t count) const;
    std::byte* planeAt(GroupId group, StatePart part, std::int64_t value) const;
    Status enqueueUpdate(const AdamwArgs& args, const StateViews& state, Stream& stream);
    std::byte* hostGradient(const Task& task, std::int64_t first) const;
    HostUpdateRange hostRange(const Task& task, std::int64_t first, std::int64_t count) const;
    // How many of the bytes of a part, from a value on, are in memory; the rest is on disk.
    std::size_t inMemory(
        GroupId group, StatePart part, std::int64_t first, std::size_t bytes) const;
    Status moveState(const Task& task, Stream& stream);
    const AdamwFactors& factorsOf(const StepInputs& inputs, const Task& task) const
    {
        return task.version == m_step ? inputs.factors : inputs.before;
    }
    Status updateOnDevice(const Task& task, const StepInputs& inputs, Stream& stream);
    Status submitHostUpdate(const StepPlan& plan, TaskIndex index, const StepInputs& inputs);
    void findHostRanges(const Task& task, std::vector<HostUpdateRange>& ranges) const;
    Status awaitLanes(const StepPlan& plan);
    Status finishWindow(const StepPlan& plan, const StepInputs& inputs, StepResult& result);
    void collect(const StepPlan& plan, StepResult& result);
    void countDisk(StepResult& result);
    LayerContext contextOf(const Task& task, Stream& stream) const;
    float embeddingScale() const noexcept;
    Status copyThroughStaging(std::byte* to, const std::byte* from, std::size_t bytes,
        bool toDevice, Stream* on = nullptr); // null: the copy lane of that direction
    Status clearMoments(GroupId group);
    Status clearPlane(GroupId group, StatePart part);
    Status finish(Stream& stream);

    Stream& stream(Lane lane) { return *m_streams[static_cast<std::size_t>(lane)]; }

    // Constant after create()
    Device& m_device;
    RunMemory& m_memory;
    const ModelConfig& m_config;
    const ParamTable& m_table;
    HostUpdater* m_updater;
    std::array<std::unique_ptr<Stream>, 3> m_streams; // Compute, CopyIn, CopyOut
    std::unique_ptr<Gate> m_gate;                     // opened by the updater, task by task
    std::unique_ptr<DiskTasks> m_disk;                // null: nothing is on disk
    std::unique_ptr<WindowTasks> m_window;            // null: the policy has none
    WindowTasks::Copy m_copy;                         // copyThroughStaging
    WindowTasks::Finish m_finish;
    std::vector<std::vector<DecayRun>> m_decayRuns; // by group
    std::vector<std::vector<Range>> m_gaps;         // by group: alignment between slots

    std::int64_t m_turnedFor = 0; // tokens: what the rotary tables were made for

    // Of the step that runs
    StepIndex m_step = 0;
    bool m_normByGroup = false;
    std::vector<TaskEvents> m_events; // by task
    std::vector<Interval> m_intervals;
    bool m_mayHaveChanged = false;
    std::vector<bool> m_accumulated; // by group: a micro-batch of this step is in already
    std::array<std::unique_ptr<Event>, 3> m_idle;
    std::uint64_t m_generation = 0;
    std::int64_t m_h2dBytes = 0;
    std::int64_t m_d2hBytes = 0;
};

} // namespace mr
