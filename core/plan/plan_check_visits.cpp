// State whose home is the host, and which the device updates: fetched before, home after, no slot
// refilled while it is needed, and nothing fetched that the host may still write.

#include "core/plan/plan_check.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace mr {

namespace {

// What a slot holds, and how far it has come.
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
        , m_slots(static_cast<std::size_t>(std::max(0, check.plan.stateSlots)))
        , m_hostUpdates(check.shape.groups.size())
    {
        for (TaskIndex i = 0; i < check.plan.tasks.size(); ++i) {
            if (check.at(i).kind == TaskKind::UpdateOnHost)
                m_hostUpdates[static_cast<std::size_t>(check.at(i).group.value)].push_back(i);
        }
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
    Status visit(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const bool moves = task.kind == TaskKind::FetchState || task.kind == TaskKind::StoreState;
        if (!moves && (task.kind != TaskKind::UpdateOnDevice || !visits(task)))
            return {};
        if (task.slot >= m_slots.size())
            return broken(index, "the plan has no such slot");
        StateSlot& slot = m_slots[task.slot];
        if (task.kind == TaskKind::FetchState) {
            if (slot.fetch && !(slot.store && m_check.isBefore(*slot.store, index)))
                return m_check.broken(PlanRule::SlotAfterLastReader, index,
                    "what was in the slot may not be home yet");
            slot = {index, {}, {}};
            return needHome(index);
        }
        if (task.kind == TaskKind::UpdateOnDevice) {
            if (slot.update || !follows(slot.fetch, index))
                return broken(index, "its state may not have come");
            slot.update = index;
            return {};
        }
        if (slot.store || !follows(slot.update, index))
            return broken(index, "it may not be updated yet");
        slot.store = index;
        return {};
    }

    bool visits(const Task& task) const
    {
        const auto group = static_cast<std::size_t>(task.group.value);
        return m_check.plan.answers[group].state != Tier::Device && task.part == Part::All;
    }

    // Nothing may still write the state that is fetched: no host update of an older version, of
    // this plan or carried in, and no store that an earlier step left.
    Status needHome(TaskIndex index) const
    {
        const Piece range = pieceOf(m_check.at(index));
        for (const TaskIndex other : m_hostUpdates[static_cast<std::size_t>(range.group.value)]) {
            if (overlap(pieceOf(m_check.at(other)), range) && !m_check.isBefore(other, index))
                return m_check.broken(PlanRule::HostBytes, index,
                    "task " + std::to_string(other) + " may still write them");
        }
        for (std::size_t i = 0; i < m_check.in.unfinished.size(); ++i) {
            const Task& carried = m_check.in.unfinished[i].task;
            const bool writes =
                carried.kind == TaskKind::UpdateOnHost || carried.kind == TaskKind::StoreState;
            if (writes && overlap(pieceOf(carried), range) &&
                !m_check.clocks.isBefore(Wait::onCarried(static_cast<TaskIndex>(i)), index))
                return m_check.broken(PlanRule::HostBytes, index,
                    "task " + std::to_string(i) + " of the carry may still write them");
        }
        return {};
    }

    // Is `before` about the same range, and over?
    bool follows(const std::optional<TaskIndex>& before, TaskIndex index) const
    {
        return before && m_check.isBefore(*before, index) &&
               pieceOf(m_check.at(*before)).key() == pieceOf(m_check.at(index)).key();
    }

    Status broken(TaskIndex index, const char* why) const
    {
        return m_check.broken(PlanRule::StateAtHand, index, why);
    }

    const PlanUnderCheck& m_check;
    std::vector<StateSlot> m_slots;
    std::vector<std::vector<TaskIndex>> m_hostUpdates; // by group
};

} // namespace

Status checkVisits(const PlanUnderCheck& check)
{
    return VisitCheck(check).run();
}

} // namespace mr
