// The rules a plan is checked against, and how a broken one is named.
//
// checkPlan (policy.h) runs eleven parts one after the other: tasks by themselves, reads, streamed
// weights, boundaries, activations kept on the host, gradients and updates, state on disk, state
// that visits the device, windows, their sums on the device, and the carry for the next step. Each
// assumes that the part before it found nothing.
//
// Threads  A PlanUnderCheck has one owner.
// Errors   Internal: the rule, the task as text, and its fault.

#pragma once

#include "core/plan/policy.h"
#include "core/plan/task_clocks.h"
#include "core/plan/vocabulary_tiles.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

namespace mr {

enum class PlanRule : std::uint8_t {
    WaitsPointBack,
    LaneFits,
    RangesAreCut,
    BudgetHolds,
    LayersInOrder,
    NotStaler,
    WeightsAtVersion,
    BatchIsThere,
    SlotAfterLastReader,
    GradientFinished,
    StateAtHand,
    NormFirst,
    LossesFirst,
    HostBytes,
    UpdatedOnce,
    UploadFollows,
    OwnerStable,
    BoundaryAtHand,
    ActivationsAtHand,
    DiskAtHand,
    CarryFollows,
};

// "a slot is refilled only after its last reader"
std::string_view name(PlanRule rule) noexcept;

// Elements of a group that one task or pending update is about.
struct Piece {
    GroupId group;
    StepIndex version = 0;
    std::int64_t first = 0;
    std::int64_t end = 0;

    auto key() const { return std::tie(group, version, first, end); }
};

inline bool isWork(const Task& task)
{
    return task.kind == TaskKind::Forward || task.kind == TaskKind::Backward;
}

inline Piece pieceOf(const Task& task)
{
    return {task.group, task.version, task.firstElement, task.firstElement + task.elementCount};
}

inline Piece pieceOf(const PendingUpdate& update)
{
    return {update.group, update.version, update.firstElement,
        update.firstElement + update.elementCount};
}

inline bool overlap(const Piece& a, const Piece& b)
{
    return a.group == b.group && a.first < b.end && b.first < a.end;
}

using MaybeTask = std::optional<TaskIndex>;

struct PlanUnderCheck {
    const StepPlan& plan;
    const Carry& in;
    const Carry& out;
    const ModelShape& shape;
    const Budget& budget;
    const OffloadPolicy& policy;
    TaskClocks clocks; // filled by the first part

    bool isByColumns() const noexcept { return plan.answers.front().byColumns; }
    // Is the home of its weights the host, so that they come for every use?
    bool streams(GroupId group) const
    {
        return plan.answers[static_cast<std::size_t>(group.value)].weights != Tier::Device;
    }
    // Does the device update it behind its own backward?
    bool isBehindBackward(GroupId group) const
    {
        return plan.answers[static_cast<std::size_t>(group.value)].behindBackward;
    }
    // Do its weights, of embedding or head, come by tiles?
    bool isTiled(GroupId group) const
    {
        return plan.answers[static_cast<std::size_t>(group.value)].tileRows > 0;
    }
    VocabularyTiles tiles() const { return tilesOf(shape, plan.answers.back().tileRows); }
    // Is it work on a tile of the head's matrix?
    bool isOnTile(const Task& task) const
    {
        return isWork(task) && task.group.value + 1 == shape.layers() && isTiled(task.group);
    }
    // Elements that the range of a task of this group counts.
    std::int64_t elementsOf(const Task& task) const
    {
        const bool isFrozen =
            task.kind == TaskKind::FetchFrozen || task.kind == TaskKind::ReadFrozen;
        return isFrozen ? frozenElements(task.group) : elements(task.group);
    }
    std::int64_t frozenElements(GroupId group) const
    {
        return shape.groups[static_cast<std::size_t>(group.value)].frozenElements;
    }
    bool fetchesFrozen(GroupId group) const
    {
        return plan.answers[static_cast<std::size_t>(group.value)].fetchesFrozen();
    }
    bool hasBackward() const noexcept { return isTraining() && !plan.probes; }
    bool isTraining() const noexcept { return plan.step == in.step + 1; }
    // Is `first` certainly over when `second` begins?
    bool isBefore(TaskIndex first, TaskIndex second) const noexcept
    {
        return clocks.isBefore(Wait::onTask(first), second);
    }
    // False if there is no `first`.
    bool isBefore(const MaybeTask& first, TaskIndex second) const noexcept
    {
        return first && isBefore(*first, second);
    }
    // Do the tasks of its version, all over before `index`, fill the range?
    bool isCovered(std::span<const TaskIndex> tasks, const Piece& range, TaskIndex index) const;
    // HostBytes, unless each of the tasks on some of the same elements is over before `index`;
    // `what` ends the message "task 3 may still ". needCarriedOver() checks tasks that an earlier
    // step left.
    Status needOver(std::span<const TaskIndex> tasks, TaskIndex index, const char* what) const;
    Status needCarriedOver(
        std::initializer_list<TaskKind> kinds, TaskIndex index, const char* what) const;
    const Task& at(TaskIndex index) const { return plan.tasks[index]; }
    std::int64_t elements(GroupId group) const
    {
        return shape.groups[static_cast<std::size_t>(group.value)].elements;
    }
    // Does the task read the weights (or add to the gradient) of this group?
    bool concerns(const Task& task, GroupId group) const noexcept
    {
        return task.group == group ||
               (shape.tiedHead && group.value == 0 && task.group.value == shape.layers() - 1);
    }

    Status broken(PlanRule rule, TaskIndex index, const std::string& why) const;
    Status broken(PlanRule rule, const std::string& why) const;
};

Status checkTasks(PlanUnderCheck& check);
Status checkReads(const PlanUnderCheck& check);
Status checkStreams(const PlanUnderCheck& check);
Status checkBoundaries(const PlanUnderCheck& check);
Status checkActivations(const PlanUnderCheck& check);
Status checkUpdates(const PlanUnderCheck& check);
Status checkDisk(const PlanUnderCheck& check);
Status checkVisits(const PlanUnderCheck& check);
Status checkWindows(const PlanUnderCheck& check);
Status checkWindowSums(const PlanUnderCheck& check);
Status checkCarry(const PlanUnderCheck& check);

} // namespace mr
