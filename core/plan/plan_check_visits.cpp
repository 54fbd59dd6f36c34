// Checks state that visits the device: it is fetched before its update and stored after, no slot is
// refilled while it is needed, and no state is fetched that the host may still write. Where weights
// stream, gradients come back after they have arrived on the host, and weights go home once no
// fetch reads the old ones.

#include "core/plan/place_check.h"
#include "core/plan/plan_check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace mr {

namespace {

// Content of a slot and its progress.
struct StateSlot {
    std::optional<TaskIndex> fetch;
    std::optional<TaskIndex> update;
    std::optional<TaskIndex> store;
};

class VisitCheck
{
public:
    explicit VisitCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_places(check, Place::State)
        , m_slots(static_cast<std::size_t>(std::max(0, check.plan.stateSlots)))
        , m_groups(check.shape.groups.size())
    {
        for (TaskIndex i = 0; i < check.plan.tasks.size(); ++i)
            note(i);
    }

    Status run()
    {
        for (TaskIndex i = 0; i < m_check.plan.tasks.size(); ++i)
            MR_TRY(visit(i));
        for (const StateSlot& slot : m_slots) {
            if (slot.fetch && !slot.store)
                return broken(*slot.fetch, "it is not brought home");
        }
        return {};
    }

private:
    struct Group {
        std::vector<TaskIndex> hostUpdates;
        std::vector<TaskIndex> sends;       // gradients to the host
        std::vector<TaskIndex> fetches;     // state, so far
        std::vector<TaskIndex> weightReads; // reads of the host's copy
        std::vector<TaskIndex> rowReads;    // likewise, of any rows
    };

    void note(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (task.kind == TaskKind::UpdateOnHost)
            groupOf(task).hostUpdates.push_back(index);
        else if (task.kind == TaskKind::SendGradient)
            groupOf(task).sends.push_back(index);
        else if (task.kind == TaskKind::FetchWeights)
            groupOf(task).weightReads.push_back(index);
        else if (task.kind == TaskKind::FetchRows)
            groupOf(task).rowReads.push_back(index);
    }

    Group& groupOf(const Task& task)
    {
        return m_groups[static_cast<std::size_t>(task.group.value)];
    }

    Status visit(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (task.kind == TaskKind::SendGradient)
            return send(index);
        const bool moves = task.kind == TaskKind::FetchState || task.kind == TaskKind::StoreState;
        if (!moves && (task.kind != TaskKind::UpdateOnDevice || !visits(task)))
            return {};
        const bool isLight = m_check.isBehindBackward(task.group);
        const std::size_t at =
            isLight ? VisitSlots::of(task, m_check.plan.stateSlots).state : task.slot;
        if (at >= m_slots.size())
            return broken(index, "the plan has no such slot");
        MR_TRY(m_places.use(index));
        StateSlot& slot = m_slots[at];
        if (task.kind == TaskKind::FetchState) {
            if (slot.fetch && !slot.store)
                return m_check.broken(PlanRule::SlotAfterLastReader, index,
                    "what was in the slot may not be home yet");
            slot = {index, {}, {}};
            groupOf(task).fetches.push_back(index);
            MR_TRY(needHome(index));
            return needGradient(index);
        }
        if (task.kind == TaskKind::UpdateOnDevice) {
            if (isLight && !hasLowPlane(m_check.plan.stateCodec)) {
                slot = {index, index, {}}; // nothing came
                return {};
            }
            if (slot.update || !follows(slot.fetch, index))
                return broken(index, "its state may not have come");
            slot.update = index;
            return {};
        }
        if (slot.store || !follows(slot.update, index) || !m_check.isBefore(slot.update, index))
            return broken(index, "it may not be updated yet");
        slot.store = index;
        return needUnread(index);
    }

    // The gradient that comes with state of weights that stream.
    Status needGradient(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (!m_check.streams(task.group) || m_check.isBehindBackward(task.group) ||
            m_check.isCovered(groupOf(task).sends, pieceOf(task), index))
            return {};
        return m_check.broken(
            PlanRule::GradientFinished, index, "the gradient may not have come to the host");
    }

    // The host's gradient bytes: no fetch may still copy the old ones.
    Status send(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (!m_check.streams(task.group))
            return {};
        MR_TRY(m_check.needOver(groupOf(task).fetches, index, "copy the gradient that was there"));
        return m_check.needCarriedOver({TaskKind::FetchState}, index, "copy them");
    }

    // The host's high half, which goes home: no fetch may still copy the old weights.
    Status needUnread(TaskIndex index)
    {
        for (const TaskIndex read : groupOf(m_check.at(index)).rowReads)
            if (!m_check.isBefore(read, index))
                return m_check.broken(PlanRule::HostBytes, index,
                    "task " + std::to_string(read) + " may still copy the old weights");
        MR_TRY(m_check.needOver(
            groupOf(m_check.at(index)).weightReads, index, "copy the old weights"));
        return m_check.needCarriedOver({TaskKind::FetchWeights}, index, "copy them");
    }

    bool visits(const Task& task) const
    {
        const auto group = static_cast<std::size_t>(task.group.value);
        return m_check.plan.answers[group].state != Tier::Device && task.part == Part::All;
    }

    // Nothing may still write the state that is fetched: no host update of an older version, of
    // this plan or carried in, and no store that an earlier step left.
    Status needHome(TaskIndex index)
    {
        MR_TRY(m_check.needOver(groupOf(m_check.at(index)).hostUpdates, index, "write them"));
        return m_check.needCarriedOver(
            {TaskKind::UpdateOnHost, TaskKind::StoreState}, index, "write them");
    }

    // Is `before` about the same range?
    bool follows(const std::optional<TaskIndex>& before, TaskIndex index) const
    {
        return before && pieceOf(m_check.at(*before)).key() == pieceOf(m_check.at(index)).key();
    }

    Status broken(TaskIndex index, const char* why) const
    {
        return m_check.broken(PlanRule::StateAtHand, index, why);
    }

    const PlanUnderCheck& m_check;
    PlaceCheck m_places;
    std::vector<StateSlot> m_slots;
    std::vector<Group> m_groups;
};

} // namespace

Status checkVisits(const PlanUnderCheck& check)
{
    return VisitCheck(check).run();
}

} // namespace mr
