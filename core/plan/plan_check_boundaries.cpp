// Checks boundaries that live on the host or the disk: each place holds the one that its task
// names, and those on their way to the disk and back pass through stages in turn.

#include "core/plan/boundary_homes.h"
#include "core/plan/disk_cuts.h"
#include "core/plan/place_check.h"
#include "core/plan/plan_check.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace mr {

namespace {

// Stages of boundaries come behind all others.
int firstStage(const StepPlan& plan)
{
    return plan.diskSlots + plan.weightStages + plan.gradientStages;
}

BoundaryHomes homesOf(const PlanUnderCheck& check)
{
    const bool saves =
        check.plan.savesBoundaries && check.plan.microBatches > 0 && check.isTraining();
    if (!saves)
        return {};
    std::vector<double> shares;
    for (const GroupAnswers& answers : check.plan.answers)
        shares.push_back(answers.boundariesOnDisk);
    return boundaryHomes(
        *check.policy.traversal, check.plan.microBatches, shares, check.plan.secondPass > 0);
}

class BoundaryCheck
{
public:
    explicit BoundaryCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_places(check, Place::Boundary | Place::BoundaryHome)
        , m_homes(homesOf(check))
        , m_head(check.shape.layers() - 1)
        , m_device(2 * static_cast<std::size_t>(check.plan.inFlight))
        , m_home(static_cast<std::size_t>(check.plan.inFlight * check.shape.layers()))
        , m_stages(static_cast<std::size_t>(m_homes.stages))
    {
    }

    Status run()
    {
        const StepPlan& plan = m_check.plan;
        if (plan.boundaryStages != m_homes.stages)
            return m_check.broken(
                PlanRule::BoundaryAtHand, "it has other places than its answers need");
        for (TaskIndex i = 0; i < plan.tasks.size(); ++i)
            MR_TRY(visit(i));
        return {};
    }

private:
    struct Content {
        int layer = -1; // it is the output of this layer
        MicroBatch micro{-1};
        bool taken = false; // from its home

        bool holds(int output, MicroBatch of) const { return layer == output && micro == of; }
        bool holds(const Task& task) const { return holds(task.group.value, task.micro); }
    };
    // A place of the host between device and disk.
    struct Stage {
        MaybeTask filled; // by a save or a read
        MaybeTask moved;  // on, to disk or to the device
    };

    Status visit(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (isWork(task) && !m_check.plan.savesBoundaries)
            return {};
        MR_TRY(m_places.use(index));
        switch (task.kind) {
        case TaskKind::Forward:
        case TaskKind::Backward:
            return compute(index);
        case TaskKind::FetchRows:
            onDevice(0, task.micro) = {0, task.micro, false};
            return {};
        case TaskKind::SaveBoundary:
            return save(index);
        case TaskKind::LoadBoundary:
            return load(index);
        case TaskKind::WriteBoundary:
            return write(index);
        case TaskKind::ReadBoundary:
            return read(index);
        default:
            return {};
        }
    }

    Content& onDevice(int layer, MicroBatch micro)
    {
        return m_device[static_cast<std::size_t>(
            2 * (micro.value % m_check.plan.inFlight) + layer % 2)];
    }

    Content& homeOf(const Task& task)
    {
        return m_home[static_cast<std::size_t>(
            (task.micro.value % m_check.plan.inFlight) * m_check.shape.layers() +
            task.group.value)];
    }

    bool isOnDisk(const Task& task) const
    {
        return m_homes.tileOf(task.group.value, task.micro.value % m_check.plan.inFlight) >= 0;
    }

    Stage& stageOf(const Task& task)
    {
        return m_stages[static_cast<std::size_t>(task.stage - firstStage(m_check.plan))];
    }

    // A task names a stage if, and only if, the home of its boundary is the disk.
    Status needStage(TaskIndex index) const
    {
        const Task& task = m_check.at(index);
        const int stage = task.stage - firstStage(m_check.plan);
        if (!isOnDisk(task))
            return task.stage < 0 ? Status()
                                  : missing(index, "its home is the host, and it names a place");
        const bool isThere = stage >= 0 && stage < m_homes.stages;
        return isThere ? Status() : missing(index, "there is no such place");
    }

    Status compute(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const int layer = task.group.value;
        const bool comesByRows =
            layer == 0 && task.kind == TaskKind::Forward && m_check.isTiled(task.group);
        if (comesByRows && !onDevice(0, task.micro).holds(0, task.micro))
            return missing(index, "its rows may not have come");
        if (layer > 0 && !onDevice(layer - 1, task.micro).holds(layer - 1, task.micro))
            return missing(index, "the output of the layer before may not be there");
        if (task.kind == TaskKind::Forward && layer < m_head)
            onDevice(layer, task.micro) = {layer, task.micro};
        return {};
    }

    // The old content of the stage must have moved on, to disk or to the device.
    Status fillStage(TaskIndex index)
    {
        Stage& stage = stageOf(m_check.at(index));
        if (stage.filled && !m_check.isBefore(stage.moved, index))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                fmt::format("task {} brought what may still be needed", *stage.filled));
        stage = {index, {}};
        return {};
    }

    // Did a task of this kind fill the stage, for the same layer and micro-batch?
    bool isStaged(TaskIndex index, TaskKind kind)
    {
        const Task& task = m_check.at(index);
        const Stage& stage = stageOf(task);
        if (!stage.filled || stage.moved || !m_check.isBefore(*stage.filled, index))
            return false;
        const Task& filler = m_check.at(*stage.filled);
        return filler.kind == kind && filler.group == task.group && filler.micro == task.micro;
    }

    Status save(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (!onDevice(task.group.value, task.micro).holds(task))
            return missing(index, "it may not be written yet");
        MR_TRY(needStage(index));
        return isOnDisk(task) ? fillStage(index) : fillHome(index, "copied to the device");
    }

    // The old boundary must have been taken from its home.
    Status fillHome(TaskIndex index, const std::string& what)
    {
        const Task& task = m_check.at(index);
        Content& home = homeOf(task);
        if (home.layer >= 0 && !home.taken)
            return m_check.broken(PlanRule::HostBytes, index, "what is there may still be " + what);
        home = {task.group.value, task.micro};
        return {};
    }

    Status write(TaskIndex index)
    {
        MR_TRY(needDisk(index));
        if (!isStaged(index, TaskKind::SaveBoundary))
            return missing(index, "it may not be saved yet");
        stageOf(m_check.at(index)).moved = index;
        return fillHome(index, "read from disk");
    }

    Status read(TaskIndex index)
    {
        MR_TRY(needDisk(index));
        Content& home = homeOf(m_check.at(index));
        if (!home.holds(m_check.at(index)))
            return missing(index, "it may not be on disk yet");
        home.taken = true;
        return fillStage(index);
    }

    Status needDisk(TaskIndex index) const
    {
        MR_TRY(needStage(index));
        return isOnDisk(m_check.at(index)) ? Status() : missing(index, "its home is the host");
    }

    Status load(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        MR_TRY(needStage(index));
        if (isOnDisk(task)) {
            if (!isStaged(index, TaskKind::ReadBoundary))
                return missing(index, "it may not have come from disk");
            stageOf(task).moved = index;
        } else if (Content& home = homeOf(task); home.holds(task)) {
            home.taken = true;
        } else {
            return missing(index, "it may not be saved yet");
        }
        onDevice(task.group.value, task.micro) = {task.group.value, task.micro};
        return {};
    }

    Status missing(TaskIndex index, const char* why) const
    {
        return m_check.broken(PlanRule::BoundaryAtHand, index, why);
    }

    const PlanUnderCheck& m_check;
    PlaceCheck m_places;
    const BoundaryHomes m_homes;
    const int m_head;
    std::vector<Content> m_device; // by micro-batch in flight, then layer's parity
    std::vector<Content> m_home;   // by micro-batch in flight, then layer: on the host or on disk
    std::vector<Stage> m_stages;
};

} // namespace

Status checkBoundaries(const PlanUnderCheck& check)
{
    return BoundaryCheck(check).run();
}

} // namespace mr
