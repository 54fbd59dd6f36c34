#include "core/step/step_executor.h"

#include "core/base/clock.h"
#include "core/device/op_checks.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace mr {
namespace {

constexpr std::size_t kMostRanges = 16; // a block has ten slots
// The device is told to begin after so many tasks, and again after as many more: it works while the
// rest is enqueued. The pool holds kMaxJobs and then blocks, so those before them must be able to
// end.
constexpr TaskIndex kTasksAhead = 32;
static_assert(kTasksAhead < HostUpdater::kMaxJobs);

// Tasks that write activations, gradients and copies of what is unchanged elsewhere.
bool changesNothing(const Task& task, bool hasWindows)
{
    switch (task.kind) {
    case TaskKind::FetchBatch:
    case TaskKind::ReadFromDisk:
    case TaskKind::ReadWeights:
    case TaskKind::SpillGradient:
    case TaskKind::FetchWeights:
    case TaskKind::FetchState:
    case TaskKind::SaveBoundary:
    case TaskKind::LoadBoundary:
    case TaskKind::SaveActivations:
    case TaskKind::LoadActivations:
    case TaskKind::WriteBoundary:
    case TaskKind::ReadBoundary:
    case TaskKind::Forward:
    case TaskKind::Backward:
    case TaskKind::FinishGradient:
    case TaskKind::SendWeights:
    case TaskKind::SendScalars:
        return true;
    case TaskKind::NormPart:
    case TaskKind::JoinNorm:
    case TaskKind::SendGradient: // where windows are, the gradient before it may not be summed yet
        return !hasWindows;
    default:
        return false;
    }
}

void copyBatch(const ModelConfig& config, const MicroBatchData& from, const BatchViews& to)
{
    const auto put = [](const std::vector<std::int32_t>& values, const TensorView& view) {
        std::memcpy(view.data, values.data(), view.bytes());
    };
    put(from.ids, to.ids);
    put(from.targets, to.targets);
    put(from.positions, to.positions);
    put(from.visibleFrom, to.visibleFrom);
    put(from.order, to.order);
    fillWindow(config, to);
}

} // namespace

Status StepExecutor::refuse(const Task& task)
{
    return Status::error(ErrorKind::Internal,
        "step executor: task kind " + std::to_string(static_cast<int>(task.kind)) +
            " cannot be carried out on lane " + std::to_string(static_cast<int>(task.lane)));
}

StepExecutor::StepExecutor(Device& device, RunMemory& memory, const ModelConfig& config,
    const ParamTable& table, HostUpdater* updater)
    : m_device(device)
    , m_memory(memory)
    , m_config(config)
    , m_table(table)
    , m_updater(updater)
{
}

StepExecutor::~StepExecutor() = default;

Result<std::unique_ptr<StepExecutor>> StepExecutor::create(Device& device, RunMemory& memory,
    const ModelConfig& config, const ParamTable& table, HostUpdater* updater, DiskStore* disk)
{
    auto executor =
        std::unique_ptr<StepExecutor>(new StepExecutor(device, memory, config, table, updater));
    constexpr std::array<std::string_view, 3> kNames = {"compute", "copy in", "copy out"};
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        auto stream = device.createStream(kNames[i]);
        if (!stream.ok())
            return stream.status();
        executor->m_streams[i] = std::move(stream).value();
        auto event = device.createEvent();
        if (!event.ok())
            return event.status();
        executor->m_idle[i] = std::move(event).value();
    }
    auto gate = device.createGate("host updates");
    if (!gate.ok())
        return gate.status();
    executor->m_gate = std::move(gate).value();
    executor->m_accumulated.resize(table.groups.size() + 1);
    executor->findDecayRuns();
    executor->findGaps();
    executor->m_copy = [self = executor.get()](
                           std::byte* to, const std::byte* from, std::size_t bytes, bool toDevice) {
        return self->copyThroughStaging(to, from, bytes, toDevice);
    };
    executor->m_finish = [self = executor.get()](Stream& stream) { return self->finish(stream); };
    if (disk) {
        auto tasks = DiskTasks::create(device, memory, *disk);
        MR_TRY(tasks.status());
        executor->m_disk = std::move(tasks).value();
    }
    if (memory.window)
        executor->m_window =
            std::make_unique<WindowTasks>(device, memory, table, executor->m_disk.get());
    return executor;
}

void StepExecutor::findDecayRuns()
{
    for (const ParamGroup& group : m_table.groups) {
        std::vector<DecayRun> runs;
        for (std::size_t i = 0; i < group.paramSlots.size(); ++i) {
            const bool last = i + 1 == group.paramSlots.size();
            const std::int64_t end = last ? group.elements : group.paramSlots[i + 1].first;
            const std::int64_t first = runs.empty() ? 0 : runs.back().first + runs.back().count;
            if (!runs.empty() && runs.back().decayed == group.paramSlots[i].decayed)
                runs.back().count = end - runs.back().first;
            else
                runs.push_back({first, end - first, group.paramSlots[i].decayed});
        }
        m_decayRuns.push_back(std::move(runs));
    }
}

void StepExecutor::findGaps()
{
    for (const ParamGroup& group : m_table.groups) {
        std::vector<Range> gaps;
        for (std::size_t i = 0; i < group.paramSlots.size(); ++i) {
            const bool last = i + 1 == group.paramSlots.size();
            const std::int64_t begin = group.paramSlots[i].first + group.paramSlots[i].count();
            const std::int64_t end = last ? group.elements : group.paramSlots[i + 1].first;
            if (end > begin)
                gaps.push_back({begin, end - begin});
        }
        m_gaps.push_back(std::move(gaps));
    }
}

// A gap holds no gradient, but norm and update run over whole groups. Blocks that share the bytes
// of a sum have their gaps at the same places.
Status StepExecutor::clearGaps(GroupId group, Stream& lane)
{
    std::byte* sums = m_memory.group(group).accumulator;
    for (const Range& gap : m_gaps[static_cast<std::size_t>(group.value)])
        MR_TRY(m_device.ops().fill(
            {vectorView(sums + 4 * static_cast<std::size_t>(gap.first), DType::F32, gap.count),
                0.0F},
            lane));
    return {};
}

Status StepExecutor::prepare(const StepPlan& plan)
{
    while (m_events.size() < plan.tasks.size()) {
        TaskEvents events;
        for (auto* slot : {&events.begin, &events.end}) {
            auto event = m_device.createEvent();
            if (!event.ok())
                return event.status();
            *slot = std::move(event).value();
        }
        events.ranges.reserve(kMostRanges);
        m_events.push_back(std::move(events));
    }
    m_intervals.reserve(m_events.size());
    return {};
}

Result<StepResult> StepExecutor::run(const StepPlan& plan, const StepInputs& inputs)
{
    m_mayHaveChanged = false;
    MR_TRY(prepare(plan));
    m_step = plan.step;
    m_normByGroup = plan.normByGroup;
    StepResult result;
    result.beginNs = nowNs();
    m_h2dBytes = 0;
    m_d2hBytes = 0;
    if (m_window)
        MR_TRY(m_window->clearPublished());
    if (m_disk) {
        MR_TRY(m_disk->flush());
        m_disk->takeMoved(); // which was between steps
    }
    std::fill(m_accumulated.begin(), m_accumulated.end(), false);
    MR_TRY(fillHostBatches(inputs));
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i) {
        MR_TRY(enqueue(plan, i, inputs));
        if (i % kTasksAhead == kTasksAhead - 1)
            m_device.submit();
    }
    MR_TRY(awaitLanes(plan));
    collect(plan, result);
    if (m_window)
        MR_TRY(finishWindow(plan, inputs, result));
    return result;
}

Status StepExecutor::finishWindow(
    const StepPlan& plan, const StepInputs& inputs, StepResult& result)
{
    m_window->finishStep(plan, result.scalars);
    const bool selects = !plan.tasks.empty() && plan.tasks.back().kind == TaskKind::SelectColumns;
    if (selects) {
        const std::int64_t before = m_window->h2dBytes;
        MR_TRY(m_window->selectColumns(stream(Lane::Compute), m_copy, m_finish, inputs.factors));
        if (m_disk) {
            MR_TRY(m_disk->flush());
            countDisk(result);
        }
        result.endNs = nowNs();
        result.movedBytes = m_window->h2dBytes - before;
    }
    result.h2dBytes += std::exchange(m_window->h2dBytes, 0);
    result.d2hBytes += std::exchange(m_window->d2hBytes, 0);
    return {};
}

Status StepExecutor::fillHostBatches(const StepInputs& inputs)
{
    if (inputs.micros.size() > m_memory.hostBatches.size())
        return Status::error(ErrorKind::Internal, "step executor: more micro-batches than planned");
    for (std::size_t m = 0; m < inputs.micros.size(); ++m) {
        // The last place where every device's ids are in host memory.
        MR_TRY(checkIds("batch", inputs.micros[m].ids, m_config.vocab));
        MR_TRY(checkIds("batch, targets", inputs.micros[m].targets, m_config.vocab, -1));
        copyBatch(m_config, inputs.micros[m], m_memory.hostBatches[m]);
    }
    return {};
}

Status StepExecutor::enqueue(const StepPlan& plan, TaskIndex index, const StepInputs& inputs)
{
    const Task& task = plan.tasks[index];
    TaskEvents& events = m_events[index];
    events.generation = 0;
    m_mayHaveChanged = m_mayHaveChanged || !changesNothing(task, m_window != nullptr);
    if (task.lane == Lane::Host)
        return submitHostUpdate(plan, index, inputs);
    if (isDisk(task.lane))
        return submitDiskTask(plan, index);
    Stream& lane = stream(task.lane);
    MR_TRY(waitFor(plan, task, lane));
    MR_TRY(lane.record(*events.begin));
    MR_TRY(enqueueWork(task, inputs, lane));
    return lane.record(*events.end);
}

void StepExecutor::collect(const StepPlan& plan, StepResult& result)
{
    result.endNs = nowNs();
    m_intervals.clear();
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i) {
        const TaskEvents& events = m_events[i];
        if (isDisk(plan.tasks[i].lane))
            m_intervals.push_back({events.diskTimes.beginNs, events.diskTimes.endNs});
        else if (events.generation != 0)
            m_intervals.push_back({events.hostTimes.beginNs, events.hostTimes.endNs});
        else
            m_intervals.push_back({events.begin->timeNs(), events.end->timeNs()});
    }
    result.tasks = m_intervals;
    result.h2dBytes = m_h2dBytes;
    result.d2hBytes = m_d2hBytes;
    if (m_disk)
        countDisk(result);
    std::memcpy(&result.scalars, m_memory.hostScalars.scalars.data, sizeof(StepScalars));
    result.skippedGroups = countSkipped(result.scalars);
    const auto* losses = m_memory.hostScalars.losses.as<const double>();
    for (std::int64_t m = 0; m < m_memory.hostScalars.losses.count(); ++m)
        result.lossSum += losses[m];
}

void StepExecutor::countDisk(StepResult& result)
{
    const DiskTasks::Moved moved = m_disk->takeMoved();
    result.diskReadBytes += moved.readBytes;
    result.diskWrittenBytes += moved.writtenBytes;
}

int StepExecutor::countSkipped(const StepScalars& ofTheStep) const
{
    const auto groups = static_cast<std::int32_t>(m_memory.groupCount());
    if (!m_normByGroup)
        return ofTheStep.finite != 0 ? 0 : groups;
    int skipped = 0;
    for (GroupId group{0}; group.value < groups; ++group.value) {
        StepScalars own;
        std::memcpy(&own, m_memory.hostScalars.scalarsOf(group).data, sizeof own);
        skipped += own.finite != 0 ? 0 : 1;
    }
    return skipped;
}

} // namespace mr
