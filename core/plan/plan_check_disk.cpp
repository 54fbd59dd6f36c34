// What passes through the host's slots on its way from disk and back.

#include "core/plan/disk_cuts.h"
#include "core/plan/plan_check.h"

#include <vector>

namespace mr {

namespace {

class DiskCheck
{
public:
    explicit DiskCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_cuts(cutsOf(check))
        , m_tiles(diskCuts(m_cuts, check.policy.tileElements))
        , m_read(m_tiles.tiles.size())
        , m_slots(static_cast<std::size_t>(m_tiles.slots))
    {
    }

    Status run()
    {
        if (m_check.plan.diskSlots != m_tiles.slots ||
            m_check.plan.diskTileElements != m_tiles.tileElements)
            return m_check.broken(PlanRule::DiskAtHand, "it has other slots than its answers need");
        for (TaskIndex i = 0; i < m_check.plan.tasks.size(); ++i)
            MR_TRY(visit(i));
        for (const Slot& slot : m_slots)
            if (slot.read && !slot.write)
                return m_check.broken(
                    PlanRule::DiskAtHand, *slot.read, "what came does not go back");
        return {};
    }

private:
    struct Slot {
        MaybeTask read;
        MaybeTask update;
        MaybeTask write;
    };

    static std::vector<HostCuts> cutsOf(const PlanUnderCheck& check)
    {
        std::vector<HostCuts> cuts;
        for (std::size_t g = 0; g < check.plan.answers.size(); ++g) {
            const GroupAnswers& answers = check.plan.answers[g];
            const GroupPlacement home{answers.weights, answers.state, answers.boundary,
                answers.deviceShare, answers.diskShare, answers.weightsOnDisk,
                answers.gradientsOnDisk};
            cuts.push_back(hostCuts(home, answers.lateShare, check.shape.groups[g].elements));
        }
        return cuts;
    }

    Status visit(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        switch (task.kind) {
        case TaskKind::ReadFromDisk:
            return read(index);
        case TaskKind::WriteToDisk:
            return write(index);
        case TaskKind::UpdateOnHost:
            return update(index);
        case TaskKind::UpdateOnDevice:
        case TaskKind::FetchState:
        case TaskKind::StoreState:
            return isOnDisk(task) ? m_check.broken(PlanRule::DiskAtHand, index,
                                        "the state of what it is about is on disk")
                                  : Status();
        default:
            return {};
        }
    }

    // Of its last element: what is on disk is the end of a group.
    bool isOnDisk(const Task& task) const
    {
        const HostCuts& cuts = m_cuts[static_cast<std::size_t>(task.group.value)];
        return task.firstElement + task.elementCount > cuts.diskFirst;
    }

    Status needTile(TaskIndex index) const
    {
        const Task& task = m_check.at(index);
        if (task.stage < 0 || static_cast<std::size_t>(task.stage) >= m_slots.size())
            return m_check.broken(PlanRule::DiskAtHand, index, "there is no such slot");
        const std::int32_t tile = m_tiles.tileOf(task.group, task.firstElement);
        const bool isWhole =
            tile >= 0 && at(tile).first == task.firstElement && at(tile).count == task.elementCount;
        return isWhole ? Status()
                       : m_check.broken(PlanRule::DiskAtHand, index, "it is not one whole tile");
    }

    const DiskRange& at(std::int32_t tile) const
    {
        return m_tiles.tiles[static_cast<std::size_t>(tile)];
    }

    Slot& slotOf(TaskIndex index)
    {
        return m_slots[static_cast<std::size_t>(m_check.at(index).stage)];
    }

    // All ends with its step, so the tile on disk is what the last step wrote.
    Status read(TaskIndex index)
    {
        MR_TRY(needTile(index));
        Slot& slot = slotOf(index);
        if (slot.read && (!slot.write || !m_check.isBefore(*slot.write, index)))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                "task " + std::to_string(*slot.read) + " brought what may not be back on disk");
        const Task& task = m_check.at(index);
        MaybeTask& before =
            m_read[static_cast<std::size_t>(m_tiles.tileOf(task.group, task.firstElement))];
        if (before)
            return m_check.broken(PlanRule::DiskAtHand, index,
                "task " + std::to_string(*before) + " has had this tile");
        before = index;
        slot = {index, {}, {}};
        return {};
    }

    // Does the slot hold this task's tile?
    bool isIn(const Slot& slot, TaskIndex index) const
    {
        return slot.read &&
               pieceOf(m_check.at(*slot.read)).key() == pieceOf(m_check.at(index)).key();
    }

    Status update(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (task.part != Part::All || !isOnDisk(task))
            return task.stage < 0 ? Status()
                                  : m_check.broken(PlanRule::DiskAtHand, index,
                                        "its state is in memory, and it names a slot");
        MR_TRY(needTile(index));
        Slot& slot = slotOf(index);
        if (!isIn(slot, index) || slot.update || !m_check.isBefore(*slot.read, index))
            return m_check.broken(
                PlanRule::DiskAtHand, index, "its state may not have come from disk");
        slot.update = index;
        return {};
    }

    Status write(TaskIndex index)
    {
        MR_TRY(needTile(index));
        Slot& slot = slotOf(index);
        if (!isIn(slot, index) || slot.write || !m_check.isBefore(slot.update, index))
            return m_check.broken(PlanRule::DiskAtHand, index, "what it writes may not be updated");
        slot.write = index;
        return {};
    }

    const PlanUnderCheck& m_check;
    const std::vector<HostCuts> m_cuts; // by group
    const DiskCuts m_tiles;
    std::vector<MaybeTask> m_read; // by tile
    std::vector<Slot> m_slots;
};

} // namespace

Status checkDisk(const PlanUnderCheck& check)
{
    return DiskCheck(check).run();
}

} // namespace mr
