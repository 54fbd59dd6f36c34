#include "core/step/step_lanes.h"

#include "core/step/step_inputs.h"

#include <optional>
#include <string_view>
#include <utility>

namespace mr {
namespace {

constexpr std::size_t kMostRanges = 16; // a block has ten slots

// The head computes in chunks of rows, each with several commands.
bool isOfHead(const StepPlan& plan, const Task& task)
{
    return task.lane == Lane::Compute &&
           task.group.value + 1 == static_cast<std::int32_t>(plan.answers.size());
}

bool isStream(Lane lane)
{
    return lane != Lane::Host && !isDisk(lane);
}

} // namespace

StepLanes::StepLanes(Device& device, HostUpdater* updater, DiskLanes* disk, GateLimits limits)
    : m_device(device)
    , m_updater(updater)
    , m_disk(disk)
    , m_limits(limits)
    , m_hostWaits(!device.info().waitsForGates)
{
}

Result<std::unique_ptr<StepLanes>> StepLanes::create(
    Device& device, HostUpdater* updater, DiskLanes* disk, GateLimits limits)
{
    auto lanes = std::unique_ptr<StepLanes>(new StepLanes(device, updater, disk, limits));
    constexpr std::array<std::string_view, 3> kNames = {"compute", "copy in", "copy out"};
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        MR_ASSIGN(lanes->m_streams[i], device.createStream(kNames[i]));
        MR_ASSIGN(lanes->m_idle[i], device.createEvent());
    }
    MR_ASSIGN(lanes->m_gate, device.createGate("host updates"));
    return lanes;
}

Status StepLanes::prepare(const StepPlan& plan)
{
    while (m_records.size() < plan.tasks.size()) {
        Record record;
        for (auto* slot : {&record.begin, &record.end}) {
            MR_ASSIGN(*slot, m_device.createEvent());
        }
        record.host.ranges.reserve(kMostRanges);
        m_records.push_back(std::move(record));
    }
    m_gateWaits.reserve(plan.waits.size());
    return {};
}

void StepLanes::start(const StepPlan& plan)
{
    m_hostWaits = !m_device.info().waitsForGates ||
                  (m_device.info().loadsLazily && m_kinds.isEarly(plan, m_limits.firstRuns));
    m_gateWaits.clear();
    m_gatesPassed = 0;
}

Status StepLanes::begin(const StepPlan& plan, TaskIndex index)
{
    const Task& task = plan.tasks[index];
    Record& record = m_records[index];
    record.generation = 0;
    MR_TRY(boundCommands(isOfHead(plan, task) ? m_limits.beforeHead : m_limits.commands));
    MR_TRY(waitForOthers(plan, task, stream(task.lane)));
    return stream(task.lane).record(*record.begin);
}

Status StepLanes::end(const StepPlan& plan, TaskIndex index)
{
    return stream(plan.tasks[index].lane).record(*m_records[index].end);
}

Status StepLanes::waitForOthers(const StepPlan& plan, const Task& task, Stream& stream)
{
    for (const Wait wait : plan.waitsOf(task)) {
        if (wait.isCarried()) // every policy that is built ends its work with the step
            return Status::error(
                ErrorKind::Internal, "step executor: a carried task is unfinished");
        const Task& other = plan.tasks[wait.index()];
        Record& record = m_records[wait.index()];
        if (other.lane == task.lane)
            continue; // in order by itself
        if (isStream(other.lane)) {
            MR_TRY(stream.waitFor(*record.end));
            continue;
        }
        MR_TRY(waitAt(other.lane, record.generation, stream));
    }
    return {};
}

Status StepLanes::waitAt(Lane lane, std::uint64_t generation, Stream& stream)
{
    Gate& gate = gateOf(lane);
    if (m_hostWaits) {
        m_device.submit(); // the gate may open only after enqueued work
        MR_TRY(waitForGate(lane, generation));
    } else if (!gate.isOpen(generation)) {
        m_gateWaits.push_back({lane, generation, m_device.enqueuedCommands()});
    }
    return stream.waitFor(gate, generation);
}

// The job that opens a gate was submitted before its waits, and its events were enqueued before, so
// it ends without anything that this thread has yet to enqueue.
Status StepLanes::boundCommands(std::uint64_t limit)
{
    for (; m_gatesPassed < m_gateWaits.size(); ++m_gatesPassed) {
        const GateWait& oldest = m_gateWaits[m_gatesPassed];
        if (gateOf(oldest.lane).isOpen(oldest.generation))
            continue;
        if (m_device.enqueuedCommands() - oldest.commands < limit)
            return {};
        m_device.submit();
        MR_TRY(waitForGate(oldest.lane, oldest.generation));
    }
    return {};
}

Gate& StepLanes::gateOf(Lane lane)
{
    return lane == Lane::Host ? *m_gate : m_disk->gate(lane);
}

Status StepLanes::waitForGate(Lane lane, std::uint64_t generation)
{
    return lane == Lane::Host ? m_updater->waitFor(*m_gate, generation)
                              : m_disk->waitFor(lane, generation);
}

// Work outside of streams waits for one event and one gate. Waits ascend and lanes run
// in order, so of each kind the last will do, if they are of one lane.
Result<DiskAfter> StepLanes::afterOf(const StepPlan& plan, const Task& task)
{
    DiskAfter after;
    std::optional<Lane> stream;
    for (const Wait wait : plan.waitsOf(task)) {
        if (wait.isCarried())
            return refuse(task);
        const Task& other = plan.tasks[wait.index()];
        const Record& record = m_records[wait.index()];
        if (other.lane == task.lane)
            continue; // in order by itself
        if (isStream(other.lane)) {
            if (stream.value_or(other.lane) != other.lane)
                return refuse(task);
            stream = other.lane;
            after.event = record.end.get();
            continue;
        }
        Gate* gate = &gateOf(other.lane);
        if (after.gate && after.gate != gate)
            return refuse(task);
        after.gate = gate;
        after.generation = record.generation;
    }
    return after;
}

Status StepLanes::submitToHost(const StepPlan& plan, TaskIndex index, HostUpdateJob job)
{
    const Task& task = plan.tasks[index];
    if (!m_updater)
        return refuse(task);
    Record& record = m_records[index];
    Result<DiskAfter> after = afterOf(plan, task);
    MR_TRY(after.status());
    job.after = after.value().event;
    job.afterGate = after.value().gate;
    job.afterGeneration = after.value().generation;
    job.gate = m_gate.get();
    job.generation = record.generation = ++m_generation;
    job.times = &record.hostTimes;
    m_updater->submit(job);
    return {};
}

Status StepLanes::submitToDisk(const StepPlan& plan, TaskIndex index)
{
    const Task& task = plan.tasks[index];
    if (!m_disk)
        return refuse(task);
    Record& record = m_records[index];
    MR_ASSIGN(DiskAfter after, afterOf(plan, task));
    Result<std::uint64_t> generation = m_disk->submit(task, after, &record.diskTimes);
    MR_TRY(generation.status());
    record.generation = generation.value();
    return {};
}

// The one wait of a step: Compute waits for the copy lanes, the caller for Compute. Host updates
// that no copy waited for are waited for apart.
Status StepLanes::awaitAll(const StepPlan& plan)
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
        if (m_records[i].generation != 0)
            MR_TRY(waitForGate(plan.tasks[i].lane, m_records[i].generation));
    return {};
}

Interval StepLanes::intervalOf(const StepPlan& plan, TaskIndex index) const
{
    const Record& record = m_records[index];
    if (isDisk(plan.tasks[index].lane))
        return {record.diskTimes.beginNs, record.diskTimes.endNs};
    if (record.generation != 0)
        return {record.hostTimes.beginNs, record.hostTimes.endNs};
    return {record.begin->timeNs(), record.end->timeNs()};
}

void StepLanes::drain() noexcept
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
