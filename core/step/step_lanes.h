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
#include "core/step/disk_lanes.h"
#include "core/step/plan_kinds.h"
#include "core/step/window_work.h"
#include "core/telemetry/stall_ledger.h"

#include <millrace/status.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace mr {

// Where the wait for a closed gate happens. A stream may wait at it, so that the engine runs ahead;
// on a card with lazy loading or a finite queue of commands that can end in a deadlock:
//
// - Loading a kernel, or a product of cuBLASLt, may wait for the card to be idle while it holds the
//   lock of the context. The thread that would open the gate then cannot ask whether its event has
//   passed. So the host waits in the first runs of each kind of plan, which load everything.
// - A channel takes about 1,024 commands. Beyond them the call that enqueues blocks, with the same
//   lock held. So the host waits once `commands` were enqueued, on all streams, since the wait at a
//   gate that is still closed; and before work of the head, which alone may be as many.
struct GateLimits {
    int firstRuns = 2;
    std::uint64_t commands = 64;
    std::uint64_t beforeHead = 0;
};

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
        Device& device, HostUpdater* updater, DiskLanes* disk, GateLimits limits = {});

    Stream& stream(Lane lane) noexcept { return *m_streams[static_cast<std::size_t>(lane)]; }

    Status prepare(const StepPlan& plan);
    // Before the first task of a run.
    void start(const StepPlan& plan);
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

    // A gate that a stream waits at.
    struct GateWait {
        Lane lane{};
        std::uint64_t generation = 0;
        std::uint64_t commands = 0; // enqueued before it
    };

    StepLanes(Device& device, HostUpdater* updater, DiskLanes* disk, GateLimits limits);
    Status waitForOthers(const StepPlan& plan, const Task& task, Stream& stream);
    Result<DiskAfter> afterOf(const StepPlan& plan, const Task& task);
    Gate& gateOf(Lane lane);
    Status waitForGate(Lane lane, std::uint64_t generation);
    Status waitAt(Lane lane, std::uint64_t generation, Stream& stream);
    Status boundCommands(std::uint64_t limit);

    Device& m_device;
    HostUpdater* m_updater;
    DiskLanes* m_disk;
    const GateLimits m_limits;
    std::array<std::unique_ptr<Stream>, 3> m_streams; // Compute, CopyIn, CopyOut
    std::array<std::unique_ptr<Event>, 3> m_idle;
    std::unique_ptr<Gate> m_gate; // opened by the updater, task by task
    std::uint64_t m_generation = 0;
    std::vector<Record> m_records; // by task

    PlanKinds m_kinds;
    bool m_hostWaits;                  // in this run
    std::vector<GateWait> m_gateWaits; // of this run, in the order of the plan
    std::size_t m_gatesPassed = 0;     // of them
};

} // namespace mr
