#include "core/step/step_executor.h"

#include "core/base/clock.h"
#include "core/plan/task_traits.h"
#include "core/step/host_batches.h"

#include <cstring>
#include <utility>

namespace mr {
namespace {

// Submits to the device after every so many tasks, so that it works while the rest is enqueued. The
// pool holds kMaxJobs and then blocks, so the tasks before them must be able to end.
constexpr TaskIndex kTasksAhead = 32;
static_assert(kTasksAhead < HostUpdater::kMaxJobs);

} // namespace

StepExecutor::StepExecutor(Device& device, RunMemory& memory, const ModelConfig& config,
    const ParamTable& table, Parts parts)
    : m_device(device)
    , m_memory(memory)
    , m_config(config)
    , m_parts(std::move(parts))
    , m_state(memory, *m_parts.copier, m_parts.disk.get())
    , m_constants(memory, config, *m_parts.copier)
    , m_decoder(device, memory, config, *m_parts.copier, m_parts.lanes->stream(Lane::Compute))
    , m_probes(device, memory, table)
    , m_passes(device, memory, config, m_probes, m_traffic)
    , m_updates(device, memory, table, m_probes, m_traffic)
{
    if (memory.window)
        m_window = std::make_unique<RunWindow>(device, memory, table, *m_parts.copier,
            m_parts.disk.get(), m_parts.lanes->stream(Lane::Compute), m_traffic);
}

Result<std::unique_ptr<StepExecutor>> StepExecutor::create(Device& device, RunMemory& memory,
    const ModelConfig& config, const ParamTable& table, HostUpdater* updater, DiskStore* disk)
{
    Parts parts;
    if (disk) {
        MR_ASSIGN(parts.disk, DiskTasks::create(device, memory, *disk));
    }
    auto lanes = StepLanes::create(device, updater, parts.disk.get());
    MR_TRY(lanes.status());
    parts.lanes = std::move(lanes).value();
    auto copier = BlockingCopier::create(device, memory.staging,
        {parts.lanes->stream(Lane::CopyIn), parts.lanes->stream(Lane::CopyOut)});
    MR_TRY(copier.status());
    parts.copier = std::move(copier).value();
    return std::unique_ptr<StepExecutor>(
        new StepExecutor(device, memory, config, table, std::move(parts)));
}

Status StepExecutor::prepareMemory()
{
    MR_TRY(m_constants.prepare());
    return m_window ? m_window->prepare() : Status();
}

Status StepExecutor::clear(std::span<std::byte> onDevice)
{
    Stream& stream = m_parts.lanes->stream(Lane::Compute);
    const auto count = static_cast<std::int64_t>(onDevice.size() / sizeof(float));
    MR_TRY(m_device.ops().fill({vectorView(onDevice.data(), DType::F32, count), 0.0F}, stream));
    return m_parts.copier->finish(stream);
}

Status StepExecutor::prepare(const StepPlan& plan)
{
    m_intervals.reserve(plan.tasks.size());
    return m_parts.lanes->prepare(plan);
}

Result<StepResult> StepExecutor::run(const StepPlan& plan, const StepInputs& inputs)
{
    m_mayHaveChanged = false;
    MR_TRY(prepare(plan));
    m_parts.lanes->start(plan);
    StepResult result;
    result.beginNs = nowNs();
    MR_TRY(beginStep(plan, inputs));
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i) {
        MR_TRY(enqueue(plan, i, inputs));
        if (i % kTasksAhead == kTasksAhead - 1)
            m_device.submit();
    }
    MR_TRY(m_parts.lanes->awaitAll(plan));
    collect(plan, result);
    if (m_window)
        MR_TRY(finishWindow(plan, inputs, result));
    result.h2dBytes = m_traffic.toDevice;
    result.d2hBytes = m_traffic.toHost;
    return result;
}

Status StepExecutor::beginStep(const StepPlan& plan, const StepInputs& inputs)
{
    m_traffic = {};
    m_probes.beginStep();
    m_passes.beginStep(plan, inputs);
    m_updates.beginStep(plan);
    if (m_window)
        MR_TRY(m_window->master().clearPublished());
    if (m_parts.disk) {
        MR_TRY(m_parts.disk->flush());
        m_parts.disk->takeMoved(); // which was between steps
    }
    MR_TRY(fillHostBatches(m_config, inputs.micros, m_memory));
    for (std::size_t m = 0; m < inputs.micros.size(); ++m)
        MR_TRY(readInputRows(m_memory, m, inputs.micros[m].ids));
    return {};
}

Status StepExecutor::enqueue(const StepPlan& plan, TaskIndex index, const StepInputs& inputs)
{
    const Task& task = plan.tasks[index];
    if (index > 0 && index == plan.secondPass)
        m_passes.beginSums();
    m_mayHaveChanged = m_mayHaveChanged || traitsOf(task.kind).mayChange(m_window != nullptr);
    if (task.lane == Lane::Host)
        return submitHostUpdate(plan, index, inputs);
    if (isDisk(task.lane))
        return m_parts.lanes->submitToDisk(plan, index);
    MR_TRY(m_parts.lanes->begin(plan, index));
    MR_TRY(enqueueWork(plan, index, inputs));
    return m_parts.lanes->end(plan, index);
}

Status StepExecutor::enqueueWork(const StepPlan& plan, TaskIndex index, const StepInputs& inputs)
{
    const Task& task = plan.tasks[index];
    Stream& stream = m_parts.lanes->stream(task.lane);
    if (m_window && RunWindow::handles(task))
        return m_window->steps().enqueue(task, inputs, stream);
    return UpdateTasks::handles(task.kind) ? m_updates.enqueue(task, inputs, stream)
                                           : m_passes.enqueue(plan, index, inputs, stream);
}

Status StepExecutor::submitHostUpdate(
    const StepPlan& plan, TaskIndex index, const StepInputs& inputs)
{
    const Task& task = plan.tasks[index];
    StepLanes::HostPart& part = m_parts.lanes->hostPart(index);
    HostUpdateJob job;
    if (m_window && RunWindow::handles(task)) {
        MR_TRY(m_window->updates().makeWork(plan, task, inputs, part.work));
        job.work = &part.work;
    } else if (task.kind == TaskKind::UpdateOnHost) {
        m_updates.fillJob(task, inputs, part.ranges, job);
    } else {
        return refuse(task);
    }
    return m_parts.lanes->submitToHost(plan, index, job);
}

void StepExecutor::collect(const StepPlan& plan, StepResult& result)
{
    result.endNs = nowNs();
    m_intervals.clear();
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i)
        m_intervals.push_back(m_parts.lanes->intervalOf(plan, i));
    result.tasks = m_intervals;
    countDisk(result);
    std::memcpy(&result.scalars, m_memory.hostScalars.scalars.data, sizeof(StepScalars));
    result.skippedGroups = m_updates.countSkipped(result.scalars);
    const auto* losses = m_memory.hostScalars.losses.as<const double>();
    for (std::int64_t m = 0; m < m_memory.hostScalars.losses.count(); ++m)
        result.lossSum += losses[m];
}

Status StepExecutor::finishWindow(
    const StepPlan& plan, const StepInputs& inputs, StepResult& result)
{
    m_window->updates().finishStep(plan, result.scalars);
    const bool selects = !plan.tasks.empty() && plan.tasks.back().kind == TaskKind::SelectColumns;
    if (!selects)
        return {};
    const std::int64_t before = m_traffic.toDevice;
    MR_TRY(m_window->ownership().select(inputs.factors, m_window->updates().state));
    MR_TRY(settleDisk());
    countDisk(result);
    result.endNs = nowNs();
    result.movedBytes = m_traffic.toDevice - before;
    return {};
}

void StepExecutor::countDisk(StepResult& result)
{
    if (!m_parts.disk)
        return;
    const DiskTasks::Moved moved = m_parts.disk->takeMoved();
    result.diskReadBytes += moved.readBytes;
    result.diskWrittenBytes += moved.writtenBytes;
}

DiskTasks::Moved StepExecutor::diskMoved() const noexcept
{
    return m_parts.disk ? m_parts.disk->allMoved() : DiskTasks::Moved{};
}

} // namespace mr
