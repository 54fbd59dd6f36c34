// StepLanes: the lanes of a step and the waits between them: streams of the device, the update pool
// and the disk thread.
//
// Every task is timed: on a stream by two events, else by the thread that runs it.
//
// Threads    Engine thread.
// Ownership  Borrows device, updater and disk.
// Lifetime   The updater ends first: its jobs point to events and gates of this.
// Errors     Those of the device, unchanged; Internal for waits that a lane cannot express.
// Order      Nothing is allocated for a plan once prepare() has seen one at least as large.

#pragma once

#include "core/device/device.h"
#include "core/optim/host_updater.h"
#include "core/plan/plan.h"
#include "core/step/disk_tasks.h"
#include "core/step/window_work.h"
#include "core/telemetry/stall_ledger.h"

#include <millrace/status.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace mr {

class StepLanes
{
public:
    // The host's part of a task, lent to the updater until the gate opens.
    struct HostPart {
        std::vector<HostUpdateRange> ranges;
        WindowWork work;
    };

    // `updater` and `disk` may be null where no plan has a task for them.
    static Result<std::unique_ptr<StepLanes>> create(
        Device& device, HostUpdater* updater, DiskTasks* disk);

    Stream& stream(Lane lane) noexcept { return *m_streams[static_cast<std::size_t>(lane)]; }

    Status prepare(const StepPlan& plan);
    // A task on a stream enqueues its work between these.
    Status begin(const StepPlan& plan, TaskIndex index);
    Status end(const StepPlan& plan, TaskIndex index);
    HostPart& hostPart(TaskIndex index) { return m_records[index].host; }
    // Adds waits, gate and times to `job`.
    Status submitToHost(const StepPlan& plan, TaskIndex index, HostUpdateJob job);
    Status submitToDisk(const StepPlan& plan, TaskIndex index);

    // Blocks until every task of the plan is over.
    Status awaitAll(const StepPlan& plan);
    // Lets all enqueued work run to its end and waits for it; drops its errors.
    void drain() noexcept;
    // When the task ran. After awaitAll().
    Interval intervalOf(const StepPlan& plan, TaskIndex index) const;

private:
    struct Record { // for each task
        std::unique_ptr<Event> begin;
        std::unique_ptr<Event> end;
        HostUpdateTimes hostTimes;
        DiskTimes diskTimes;
        HostPart host;
        std::uint64_t generation = 0; // for the lane's gate; 0: its lane is a stream
    };

    StepLanes(Device& device, HostUpdater* updater, DiskTasks* disk);
    Status waitForOthers(const StepPlan& plan, const Task& task, Stream& stream);
    Result<DiskAfter> afterOf(const StepPlan& plan, const Task& task);
    Gate& gateOf(Lane lane);
    Status waitForGate(Lane lane, std::uint64_t generation);

    Device& m_device;
    HostUpdater* m_updater;
    DiskTasks* m_disk;
    std::array<std::unique_ptr<Stream>, 3> m_streams; // Compute, CopyIn, CopyOut
    std::array<std::unique_ptr<Event>, 3> m_idle;
    std::unique_ptr<Gate> m_gate; // opened by the updater, task by task
    std::uint64_t m_generation = 0;
    std::vector<Record> m_records; // by task
};

} // namespace mr
