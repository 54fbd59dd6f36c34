// Who waits for whom while a plan runs: streams, the pool and the disk thread. Part of
// StepExecutor.

#include "core/step/step_executor.h"

#include <optional>

namespace mr {
namespace {

bool isStream(Lane lane)
{
    return lane != Lane::Host && !isDisk(lane);
}

} // namespace

Status StepExecutor::waitFor(const StepPlan& plan, const Task& task, Stream& lane)
{
    for (const Wait wait : plan.waitsOf(task)) {
        if (wait.isCarried()) // every policy that is built ends its work with the step
            return Status::error(
                ErrorKind::Internal, "step executor: a carried task is unfinished");
        const Task& other = plan.tasks[wait.index()];
        TaskEvents& events = m_events[wait.index()];
        if (other.lane == task.lane)
            continue; // in order by itself
        if (isStream(other.lane)) {
            MR_TRY(lane.waitFor(*events.end));
            continue;
        }
        if (!m_device.info().waitsForGates) {
            m_device.submit(); // what opens the gate may wait for what was enqueued
            MR_TRY(waitForGate(other.lane, events.generation));
        }
        MR_TRY(lane.waitFor(gateOf(other.lane), events.generation));
    }
    return {};
}

Gate& StepExecutor::gateOf(Lane lane)
{
    return lane == Lane::Host ? *m_gate : m_disk->gate(lane);
}

Status StepExecutor::waitForGate(Lane lane, std::uint64_t generation)
{
    return lane == Lane::Host ? m_updater->waitFor(*m_gate, generation)
                              : m_disk->waitFor(lane, generation);
}

// What work that is not on a stream waits for: one event and one gate. Waits ascend and lanes run
// in order, so of each kind the last will do, if they are of one lane.
Result<DiskAfter> StepExecutor::afterOf(const StepPlan& plan, const Task& task)
{
    DiskAfter after;
    std::optional<Lane> stream;
    for (const Wait wait : plan.waitsOf(task)) {
        if (wait.isCarried())
            return refuse(task);
        const Task& other = plan.tasks[wait.index()];
        const TaskEvents& events = m_events[wait.index()];
        if (other.lane == task.lane)
            continue; // in order by itself
        if (isStream(other.lane)) {
            if (stream.value_or(other.lane) != other.lane)
                return refuse(task);
            stream = other.lane;
            after.event = events.end.get();
            continue;
        }
        Gate* gate = &gateOf(other.lane);
        if (after.gate && after.gate != gate)
            return refuse(task);
        after.gate = gate;
        after.generation = events.generation;
    }
    return after;
}

Status StepExecutor::submitDiskTask(const StepPlan& plan, TaskIndex index)
{
    const Task& task = plan.tasks[index];
    if (!m_disk)
        return refuse(task);
    TaskEvents& events = m_events[index];
    Result<DiskAfter> after = afterOf(plan, task);
    MR_TRY(after.status());
    Result<std::uint64_t> generation = m_disk->submit(task, after.value(), &events.diskTimes);
    MR_TRY(generation.status());
    events.generation = generation.value();
    return {};
}

Status StepExecutor::submitHostUpdate(
    const StepPlan& plan, TaskIndex index, const StepInputs& inputs)
{
    const Task& task = plan.tasks[index];
    const bool isWindow = m_window && WindowTasks::handles(task);
    if (!m_updater || (!isWindow && task.kind != TaskKind::UpdateOnHost))
        return refuse(task);
    TaskEvents& events = m_events[index];
    Result<DiskAfter> after = afterOf(plan, task);
    MR_TRY(after.status());
    HostUpdateJob job;
    job.after = after.value().event;
    job.afterGate = after.value().gate;
    job.afterGeneration = after.value().generation;
    if (isWindow) {
        MR_TRY(m_window->makeWork(plan, task, inputs, events.work));
        job.work = &events.work;
    } else {
        findHostRanges(task, events.ranges);
        job.ranges = events.ranges;
        job.factors = factorsOf(inputs, task);
        job.scalars = scalarsFor(m_memory.hostScalars, task.group).as<const StepScalars>();
    }
    job.gate = m_gate.get();
    job.generation = events.generation = ++m_generation;
    job.times = &events.hostTimes;
    m_updater->submit(job);
    return {};
}

// The one wait of a step: Compute waits for the copy lanes, the caller for Compute. Host updates
// that no copy waited for are waited for apart.
Status StepExecutor::awaitLanes(const StepPlan& plan)
{
    Stream& compute = stream(Lane::Compute);
    for (const Lane lane : {Lane::CopyIn, Lane::CopyOut}) {
        Event& idle = *m_idle[static_cast<std::size_t>(lane)];
        MR_TRY(stream(lane).record(idle));
        MR_TRY(compute.waitFor(idle));
    }
    Event& idle = *m_idle[static_cast<std::size_t>(Lane::Compute)];
    MR_TRY(compute.record(idle));
    m_device.submit();
    MR_TRY(idle.wait());
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i)
        if (m_events[i].generation != 0)
            MR_TRY(waitForGate(plan.tasks[i].lane, m_events[i].generation));
    return {};
}

void StepExecutor::drain() noexcept
{
    m_device.submit();
    for (std::size_t i = 0; i < m_streams.size(); ++i) {
        if (!m_streams[i]->record(*m_idle[i]).ok())
            continue;
        m_device.submit();
        (void)m_idle[i]->wait().ok();
    }
    if (m_disk)
        m_disk->drain(); // slots are read into
}

} // namespace mr
