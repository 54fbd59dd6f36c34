// Bytes that tasks move over the link and to and from disks. See cost_model.h.

#include "core/plan/columns.h"
#include "core/plan/cost_model.h"
#include "core/plan/disk_cuts.h"
#include "core/plan/task_traits.h"

namespace mr {

namespace {

// Is the home of its weights the host?
bool isStreamed(const StepPlan& plan, const Task& task)
{
    const auto group = static_cast<std::size_t>(task.group.value);
    return group < plan.answers.size() && plan.answers[group].weights != Tier::Device;
}

// Bytes of a task about frozen weights, as they are held.
std::int64_t frozenBytes(const Task& task, const ModelShape& shape, Precision precision) noexcept
{
    const GroupShape& group = shape.groups[static_cast<std::size_t>(task.group.value)];
    return static_cast<std::int64_t>(group.frozenBytes(
        task.firstElement, task.elementCount, precision == Precision::BF16 ? 2 : 4));
}

} // namespace

std::int64_t copyBytes(
    const StepPlan& plan, const Task& task, const ModelShape& shape, Precision precision) noexcept
{
    const auto complement = [&] {
        const auto group = static_cast<std::size_t>(task.group.value);
        return complementCount(
            shape.groups[group], plan.answers[group], task.firstElement, task.elementCount);
    };
    const std::int64_t elementBytes = precision == Precision::BF16 ? 2 : 4;
    switch (task.kind) {
    case TaskKind::FetchBatch:
        return static_cast<std::int64_t>(shape.batchBytes);
    case TaskKind::FetchFrozen: {
        const GroupAnswers& home = plan.answers[static_cast<std::size_t>(task.group.value)];
        return home.frozen == Tier::Device ? 0 : frozenBytes(task, shape, precision);
    }
    case TaskKind::FetchWeights:
    case TaskKind::SendGradient:
    case TaskKind::SendWeights:
        return (task.part == Part::All ? task.elementCount : complement()) * elementBytes;
    case TaskKind::UploadComplement:
        return complement() * elementBytes;
    case TaskKind::SelectColumns: {
        std::int64_t columns = 0;
        for (const GroupShape& group : shape.groups)
            for (const WeightShape& slot : group.weights)
                columns += slot.cols;
        return columns * static_cast<std::int64_t>(sizeof(float));
    }
    case TaskKind::FetchState: // in BF16 weights that stay are the high half
        if (plan.isBehindBackward(task))
            return static_cast<std::int64_t>(
                stateBytes(plan.stateCodec, task.elementCount, elementBytes == 4));
        return static_cast<std::int64_t>(stateBytes(plan.stateCodec, task.elementCount,
                   elementBytes == 4 || isStreamed(plan, task))) +
               (isStreamed(plan, task) ? task.elementCount * elementBytes : 0); // the gradient
    case TaskKind::StoreState: // weights that stay have no other home
        return static_cast<std::int64_t>(stateBytes(plan.stateCodec, task.elementCount,
            elementBytes == 4 || isStreamed(plan, task) || !plan.isBehindBackward(task)));
    case TaskKind::FetchRows: // the output of the embedding, as it is
        return static_cast<std::int64_t>(shape.boundaryBytes);
    case TaskKind::SaveBoundary:
    case TaskKind::LoadBoundary:
        return static_cast<std::int64_t>(shape.keptBytes());
    case TaskKind::SaveActivations:
    case TaskKind::LoadActivations:
        return static_cast<std::int64_t>(shape.savedBytesPerBlock);
    case TaskKind::SendScalars:
        if (task.group.value >= 0)
            return static_cast<std::int64_t>(kGroupScalarBytes);
        return static_cast<std::int64_t>(
            shape.sentScalarBytes + (task.part == Part::Urgent ? kSentWindowBytes : 0));
    default:
        return 0;
    }
}

LinkTraffic linkTraffic(const StepPlan& plan, const ModelShape& shape, Precision precision)
{
    LinkTraffic traffic;
    for (const Task& task : plan.tasks) {
        const std::int64_t bytes = copyBytes(plan, task, shape, precision);
        if (task.lane == Lane::CopyIn)
            traffic.hostToDeviceBytes += bytes;
        else if (task.lane == Lane::CopyOut)
            traffic.deviceToHostBytes += bytes;
    }
    return traffic;
}

std::int64_t diskBytes(
    const StepPlan& plan, const Task& task, const ModelShape& shape, Precision precision) noexcept
{
    const TaskTraits& traits = traitsOf(task.kind);
    if (traits.runsOn(Lane::DiskBoundaries))
        return static_cast<std::int64_t>(diskPages(shape.keptBytes()));
    if (task.kind == TaskKind::ReadFrozen)
        return frozenBytes(task, shape, precision);
    const DiskParts parts{plan.stateCodec, precision == Precision::BF16};
    const auto group = static_cast<std::size_t>(task.group.value);
    const HostCuts cuts = hostCuts(plan.answers[group], shape.groups[group].elements);
    const DiskRange tile = diskRangeAt(cuts, task.firstElement, task.elementCount, sendsOf(plan));
    std::int64_t bytes = 0;
    for (const DiskRegion region : {DiskRegion::State, DiskRegion::Weights, DiskRegion::Gradient}) {
        const bool isThere =
            task.kind == TaskKind::ReadFromDisk ? tile.isRead(region) : tile.has(region);
        if (traits.moves(region) && isThere)
            bytes += static_cast<std::int64_t>(
                diskPages(diskRegionBytes(parts, region, task.elementCount)));
    }
    return bytes;
}

DiskTraffic diskTraffic(const StepPlan& plan, const ModelShape& shape, Precision precision)
{
    DiskTraffic traffic;
    for (const Task& task : plan.tasks) {
        if (!isDisk(task.lane))
            continue;
        const std::int64_t bytes = diskBytes(plan, task, shape, precision);
        (isDiskWrite(task.kind) ? traffic.writtenBytes : traffic.readBytes) += bytes;
    }
    return traffic;
}

} // namespace mr
