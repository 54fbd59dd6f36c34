// Checks weights that stream, frozen ones too: they are in the slot that a layer names, at the
// version it names, and complete.

#include "core/plan/place_check.h"
#include "core/plan/plan_check.h"
#include "core/plan/task_traits.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mr {

namespace {

class StreamCheck
{
public:
    explicit StreamCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_places(check, Place::Weights)
        , m_slots(static_cast<std::size_t>(std::max(0, check.plan.weightSlots)))
        , m_writes(check.shape.groups.size())
    {
        const auto& held = check.in.heldSlots;
        for (std::size_t i = 0; i < std::min(held.size(), m_slots.size()); ++i)
            if (check.isTraining() && isFrozen(held[i].group))
                m_slots[i] = {held[i].group, 0, check.frozenElements(held[i].group), true};
    }

    Status run()
    {
        for (TaskIndex i = 0; i < m_check.plan.tasks.size(); ++i) {
            const Task& task = m_check.at(i);
            const bool sends = task.kind == TaskKind::SendWeights;
            if (usesSlotForUpdate(task))
                MR_TRY(update(i));
            if (!concernsSlots(task))
                continue;
            if (writesSource(task)) {
                m_writes[static_cast<std::size_t>(task.group.value)].push_back(i);
                continue;
            }
            if (task.slot >= m_slots.size())
                return m_check.broken(
                    PlanRule::WeightsAtVersion, i, "the plan has no such place for weights");
            MR_TRY(m_places.use(i));
            MR_TRY(sends || isWork(task) ? use(i) : fetch(i));
        }
        return {};
    }

private:
    // Does it read or change streamed weights where they are, behind backward?
    bool usesSlotForUpdate(const Task& task) const
    {
        const bool isUpdate = task.kind == TaskKind::PrepareUpdate ||
                              task.kind == TaskKind::UpdateOnDevice ||
                              task.kind == TaskKind::StoreState;
        return isUpdate && m_check.isBehindBackward(task.group) && m_check.streams(task.group);
    }

    Status update(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const std::size_t at = VisitSlots::of(task, m_check.plan.stateSlots).weights;
        if (task.kind == TaskKind::PrepareUpdate && m_check.isTiled(task.group))
            return {}; // it reads no weights
        const bool isThere =
            at < m_slots.size() && m_slots[at].group == task.group && holds(m_slots[at], task);
        if (!isThere)
            return m_check.broken(
                PlanRule::WeightsAtVersion, index, "its weights may not be on the device");
        return m_places.use(index);
    }

    bool concernsSlots(const Task& task) const
    {
        if (task.kind == TaskKind::FetchFrozen)
            return true;
        const bool comesByRows = isWork(task) && task.group.value == 0 && m_check.isTiled({0});
        const bool ranged = task.kind == TaskKind::FetchWeights || (isWork(task) && !comesByRows) ||
                            task.kind == TaskKind::SendWeights || writesSource(task);
        return ranged &&
               (m_check.streams(task.group) || (isWork(task) && m_check.fetchesFrozen(task.group)));
    }

    struct Slot {
        GroupId group{-1};
        StepIndex version = 0;
        std::int64_t elements = 0; // that have come, or are on their way
        bool used = false;         // by a layer, or sent to the host
        std::int64_t first = 0;    // of a tile
    };

    // All that the task is about? Of blocks that is the whole group.
    bool holds(const Slot& slot, const Task& task) const
    {
        if (!m_check.isTiled(task.group))
            return slot.elements == neededBy(task.group);
        return slot.first == task.firstElement && slot.elements == task.elementCount;
    }

    Status fetch(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Slot& slot = m_slots[task.slot];
        const bool goesOn = slot.group == task.group && slot.version == task.version && !slot.used;
        const bool isTile = m_check.isTiled(task.group);
        if (!goesOn || isTile)
            slot = {task.group, task.version, 0, false, isTile ? task.firstElement : 0};
        if (task.firstElement != slot.first + slot.elements)
            return m_check.broken(PlanRule::WeightsAtVersion, index, "its tile is not the next");
        slot.elements += task.elementCount;
        return task.kind == TaskKind::FetchFrozen ? Status() : needSource(index);
    }

    // Does the task write weights on the host?
    static bool writesSource(const Task& task)
    {
        return traitsOf(task.kind).writes.has(Place::HostWeights);
    }

    // The bytes on the host: every update that is due is made, none of a later version is begun.
    Status needSource(TaskIndex index) const
    {
        const Task& task = m_check.at(index);
        const Piece range = pieceOf(task);
        for (const PendingUpdate& update : m_check.in.pending) {
            const Piece due = pieceOf(update);
            if (update.dueStep <= m_check.in.step + 1 && overlap(due, range) &&
                !isUpdated(index, {range.group, update.version, std::max(due.first, range.first),
                                      std::min(due.end, range.end)}))
                return m_check.broken(PlanRule::WeightsAtVersion, index,
                    "an update of the carry that is due may not be made");
        }
        for (const TaskIndex other : m_writes[static_cast<std::size_t>(task.group.value)]) {
            if (overlap(pieceOf(m_check.at(other)), range) &&
                m_check.at(other).version > task.version)
                return m_check.broken(PlanRule::WeightsAtVersion, index,
                    fmt::format("task {} writes a later version over it", other));
        }
        return m_check.needCarriedOver(
            {TaskKind::UpdateOnHost, TaskKind::StoreState}, index, "write them");
    }

    bool isUpdated(TaskIndex index, const Piece& range) const
    {
        return m_check.isCovered(
            m_writes[static_cast<std::size_t>(range.group.value)], range, index);
    }

    // A layer reads those of its version; those from before an update are sent to it.
    Status use(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Slot& slot = m_slots[task.slot];
        const StepIndex version = task.version - (isWork(task) ? 0 : 1);
        const bool isOfVersion = slot.version == version || isFrozen(task.group);
        if (slot.group != task.group || !isOfVersion || !holds(slot, task))
            return m_check.broken(PlanRule::WeightsAtVersion, index,
                isWork(task) ? "its weights may not have come"
                             : "its weights may not be on the device");
        slot.used = true;
        return {};
    }

    bool isFrozen(GroupId group) const
    {
        return group.value >= 0 && group.value < m_check.shape.layers() &&
               m_check.fetchesFrozen(group);
    }

    std::int64_t neededBy(GroupId group) const
    {
        return m_check.fetchesFrozen(group) ? m_check.frozenElements(group)
                                            : m_check.elements(group);
    }

    const PlanUnderCheck& m_check;
    PlaceCheck m_places;
    std::vector<Slot> m_slots;
    std::vector<std::vector<TaskIndex>> m_writes; // by group
};

} // namespace

Status checkStreams(const PlanUnderCheck& check)
{
    return StreamCheck(check).run();
}

} // namespace mr
