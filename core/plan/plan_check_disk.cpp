// Checks the host's slots: their content on its way from disk and back.

#include "core/plan/columns.h"
#include "core/plan/disk_cuts.h"
#include "core/plan/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace mr {

namespace {

class DiskCheck
{
public:
    explicit DiskCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_window(windowLayout(check.shape, check.policy, 0.0))
        , m_cuts(cutsOf(check, m_window))
        , m_disk(m_window.isActive() ? diskCuts(m_window, check.shape) : cutsOf(check, m_cuts))
        , m_tiles(m_disk.tiles.size())
        , m_places(static_cast<std::size_t>(m_disk.stages()))
    {
    }

    Status run()
    {
        const StepPlan& plan = m_check.plan;
        if (plan.diskSlots != m_disk.slots || plan.weightStages != m_disk.weightStages ||
            plan.gradientStages != m_disk.gradientStages ||
            plan.diskTileElements != m_disk.tileElements)
            return m_check.broken(
                PlanRule::DiskAtHand, "it has other places than its answers need");
        if (plan.sendsWeights && !plan.normByGroup)
            return m_check.broken(
                PlanRule::DiskAtHand, "it sends weights to updates that wait for all gradients");
        for (TaskIndex i = 0; i < plan.tasks.size(); ++i)
            MR_TRY(visit(i));
        for (const Place& place : m_places) {
            if (mustBeWritten(place) && !place.written)
                return m_check.broken(
                    PlanRule::DiskAtHand, *place.filled, "what came does not go to disk");
        }
        return {};
    }

private:
    // A place of the host and the tasks of its content.
    struct Place {
        MaybeTask filled;   // from disk, or, of a gradient, from the device
        MaybeTask update;   // changes the content
        MaybeTask written;  // to disk
        MaybeTask copied;   // to the device
        MaybeTask gradient; // from the device, for the update; and weights
        MaybeTask weights;
        // Tasks of the content before: filled, written, copied.
        std::array<MaybeTask, 3> before;
    };
    // Tasks of a tile on disk, in this step.
    struct Tile {
        MaybeTask state; // read for its update
        MaybeTask written;
        MaybeTask weights; // the last read of them alone
        MaybeTask spill;
    };

    static std::vector<HostCuts> cutsOf(const PlanUnderCheck& check, const WindowLayout& window)
    {
        std::vector<HostCuts> cuts;
        for (std::size_t g = 0; g < check.plan.answers.size(); ++g) {
            cuts.push_back(hostCuts(check.plan.answers[g], check.shape.groups[g].elements));
            if (window.isActive()) // whole rows
                cuts.back().diskFirst = window.groups[g].diskFirst;
        }
        return cuts;
    }

    static DiskCuts cutsOf(const PlanUnderCheck& check, const std::vector<HostCuts>& groups)
    {
        DiskCuts cuts = diskCuts(groups, check.policy.tileElements, sendsOf(check.plan));
        for (std::size_t g = 0; g < check.plan.answers.size(); ++g)
            addFrozenTiles(cuts, GroupId{static_cast<std::int32_t>(g)},
                check.plan.answers[g].frozenOnDisk, check.shape.groups[g],
                check.policy.tileElements);
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
        case TaskKind::ReadWeights:
            return readWeights(index);
        case TaskKind::ReadFrozen:
            return readFrozen(index);
        case TaskKind::FetchFrozen:
            return fetchFrozen(index);
        case TaskKind::SpillGradient:
            return spill(index);
        case TaskKind::UpdateOnHost:
            return update(index);
        case TaskKind::FetchWeights:
            return fetch(index);
        case TaskKind::SendGradient:
            return send(index);
        case TaskKind::SendWeights:
            return sendWeights(index);
        case TaskKind::FetchState:
        case TaskKind::StoreState:
            if (m_check.isBehindBackward(task.group))
                return visitState(index);
            [[fallthrough]];
        case TaskKind::UpdateOnDevice:
            return task.part == Part::All && !m_check.isBehindBackward(task.group) &&
                           reaches(task, cutsOf(task).diskFirst)
                       ? broken(index, "the state of what it is about is on disk")
                       : Status();
        default:
            return {};
        }
    }

    const HostCuts& cutsOf(const Task& task) const
    {
        return m_cuts[static_cast<std::size_t>(task.group.value)];
    }

    // Compares the last element, because the elements on disk are the end of a group.
    static bool reaches(const Task& task, std::int64_t first)
    {
        return task.firstElement + task.elementCount > first;
    }

    Status broken(TaskIndex index, const std::string& why) const
    {
        return m_check.broken(PlanRule::DiskAtHand, index, why);
    }

    // Is the task about the whole tile? An update of a window leaves out the gap behind its rows;
    // another rule checks that they are a tile of the window.
    bool isAboutAll(const Task& task, const DiskRange& tile) const
    {
        const bool leavesGap = task.kind == TaskKind::UpdateOnHost && task.part == Part::Complement;
        return tile.first == task.firstElement &&
               (leavesGap ? task.elementCount <= tile.count : task.elementCount == tile.count);
    }

    // The tile is whole and has the region on disk; the place is one of those for it.
    Status need(TaskIndex index, DiskRegion region, int firstPlace, int places) const
    {
        const Task& task = m_check.at(index);
        if (task.stage < firstPlace || task.stage >= firstPlace + places)
            return broken(index, "there is no such place");
        const std::int32_t tile = m_disk.tileOf(task.group, task.firstElement);
        const bool isWhole = tile >= 0 && isAboutAll(task, range(tile));
        if (!isWhole)
            return broken(index, "it is not one whole tile");
        return range(tile).has(region) ? Status()
                                       : broken(index, "what it moves of the tile is in memory");
    }

    Status needSlot(TaskIndex index) const
    {
        return need(index, DiskRegion::State, 0, m_disk.slots);
    }

    // Precondition: need() found its tile.
    const DiskRange& rangeOf(TaskIndex index) const
    {
        const Task& task = m_check.at(index);
        return range(m_disk.tileOf(task.group, task.firstElement));
    }

    const DiskRange& range(std::int32_t tile) const
    {
        return m_disk.tiles[static_cast<std::size_t>(tile)];
    }

    Place& placeOf(TaskIndex index)
    {
        return m_places[static_cast<std::size_t>(m_check.at(index).stage)];
    }

    Tile& tileOf(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        return m_tiles[static_cast<std::size_t>(m_disk.tileOf(task.group, task.firstElement))];
    }

    // Every one of them that is there is certainly over.
    bool over(std::span<const MaybeTask> tasks, TaskIndex index) const
    {
        return std::all_of(tasks.begin(), tasks.end(),
            [&](const MaybeTask& task) { return !task || m_check.isBefore(*task, index); });
    }

    bool over(std::initializer_list<MaybeTask> tasks, TaskIndex index) const
    {
        return over(std::span(tasks.begin(), tasks.size()), index);
    }

    bool mustBeWritten(const Place& place) const
    {
        if (!place.filled)
            return false;
        const TaskKind kind = m_check.at(*place.filled).kind;
        return kind != TaskKind::ReadWeights && kind != TaskKind::ReadFrozen;
    }

    // No task may still need the old content of the place.
    Status refill(TaskIndex index)
    {
        Place& place = placeOf(index);
        if ((mustBeWritten(place) && !place.written) ||
            !over({place.filled, place.written, place.copied}, index))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                fmt::format("task {} brought what may still be needed", *place.filled));
        place = {index, {}, {}, {}, {}, {}, {place.filled, place.written, place.copied}};
        return {};
    }

    // Tasks that the last step left running may still change the disk or use a place.
    Status needCarriedOver(TaskIndex index) const
    {
        return m_check.needCarriedOver({TaskKind::UpdateOnHost, TaskKind::WriteToDisk,
                                           TaskKind::FetchWeights, TaskKind::FetchFrozen},
            index, "change it, or copy from a place");
    }

    Status read(TaskIndex index)
    {
        MR_TRY(needSlot(index));
        MR_TRY(refill(index));
        Tile& tile = tileOf(index);
        MR_TRY(mayRead(index, tile));
        const Task& task = m_check.at(index);
        const bool needsSpill =
            task.version == m_check.plan.step && rangeOf(index).has(DiskRegion::Gradient);
        if ((needsSpill && m_check.isTraining() && !tile.spill) || !over({tile.spill}, index))
            return broken(index, "its gradient may not be on disk");
        tile.state = index;
        return needCarriedOver(index);
    }

    // Once a step; but a step may make the updates of two windows.
    Status mayRead(TaskIndex index, const Tile& tile) const
    {
        if (!tile.state)
            return {};
        const Task& before = m_check.at(*tile.state);
        if (!m_window.isActive() || before.version == m_check.at(index).version)
            return broken(index, fmt::format("task {} has had this tile", *tile.state));
        return m_check.isBefore(tile.written, index)
                   ? Status()
                   : broken(index, "the update of the window before may not be on disk");
    }

    // Does the place hold this task's tile, and did it come? (Tasks about one tile begin alike.)
    bool isIn(const Place& place, TaskIndex index) const
    {
        if (!place.filled || !m_check.isBefore(*place.filled, index))
            return false;
        const Task& filled = m_check.at(*place.filled);
        const Task& task = m_check.at(index);
        return filled.group == task.group && filled.version == task.version &&
               filled.firstElement == task.firstElement;
    }

    Status needNoPlace(TaskIndex index) const
    {
        return m_check.at(index).stage < 0
                   ? Status()
                   : broken(index, "its state is in memory, and it names a place");
    }

    // The state of the task's tile came to its place, and no update has changed it there.
    Status needState(TaskIndex index)
    {
        MR_TRY(needSlot(index));
        const Place& place = placeOf(index);
        return isIn(place, index) && !place.update
                   ? Status()
                   : broken(index, "its state may not have come from disk");
    }

    Status update(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (!reaches(task, cutsOf(task).diskFirst))
            return needNoPlace(index);
        MR_TRY(needState(index));
        Place& place = placeOf(index);
        if (rangeOf(index).sendsGradient && !m_check.isBefore(place.gradient, index))
            return broken(index, "its gradient may not have come from the device");
        if (rangeOf(index).sendsWeights && !m_check.isBefore(place.weights, index))
            return broken(index, "its weights may not have come from the device");
        place.update = index;
        return {};
    }

    // Behind backward the state of a tile goes to the device and comes back to its place, with new
    // weights.
    Status visitState(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (!reaches(task, cutsOf(task).diskFirst))
            return needNoPlace(index);
        MR_TRY(needState(index));
        if (task.kind == TaskKind::StoreState)
            placeOf(index).update = index;
        return {};
    }

    Status write(TaskIndex index)
    {
        MR_TRY(needSlot(index));
        Place& place = placeOf(index);
        if (!isIn(place, index) || place.written || !m_check.isBefore(place.update, index))
            return broken(index, "what it writes may not be updated");
        if (!over({tileOf(index).weights}, index))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                "the old weights may still be read from disk");
        place.written = tileOf(index).written = index;
        return {};
    }

    Status readWeights(TaskIndex index)
    {
        MR_TRY(need(index, DiskRegion::Weights, m_disk.slots, m_disk.weightStages));
        MR_TRY(refill(index));
        Tile& tile = tileOf(index);
        if (tile.state && !m_check.isBefore(tile.written, index))
            return broken(index, "their update may not be on disk");
        tile.weights = index;
        return needCarriedOver(index);
    }

    // One whole tile, and one of the places that weights pass through.
    Status needFrozen(TaskIndex index) const
    {
        const Task& task = m_check.at(index);
        if (task.stage < m_disk.slots || task.stage >= m_disk.slots + m_disk.weightStages)
            return broken(index, "there is no such place");
        const std::int32_t tile = m_disk.frozenTileOf(task.group, task.firstElement);
        const bool isWhole =
            tile >= 0 && m_disk.frozen[static_cast<std::size_t>(tile)].first == task.firstElement &&
            m_disk.frozen[static_cast<std::size_t>(tile)].count == task.elementCount;
        return isWhole ? Status() : broken(index, "it is not one whole tile");
    }

    Status readFrozen(TaskIndex index)
    {
        MR_TRY(needFrozen(index));
        MR_TRY(refill(index));
        return needCarriedOver(index);
    }

    Status fetchFrozen(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const auto group = static_cast<std::size_t>(task.group.value);
        const std::int64_t first = firstFrozenOnDisk(
            m_check.plan.answers[group].frozenOnDisk, m_check.shape.groups[group].frozenElements);
        if (!reaches(task, first))
            return task.stage < 0
                       ? Status()
                       : broken(index, "its weights are in memory, and it names a place");
        MR_TRY(needFrozen(index));
        Place& place = placeOf(index);
        if (!isIn(place, index) || m_check.at(*place.filled).kind != TaskKind::ReadFrozen)
            return broken(index, "its weights may not have come from disk");
        place.copied = index;
        return {};
    }

    // Weights come from the place of an update, once that is over, or from the place of a read.
    Status fetch(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (!reaches(task, cutsOf(task).weightsFirst))
            return task.stage < 0
                       ? Status()
                       : broken(index, "its weights are in memory, and it names a place");
        MR_TRY(need(index, DiskRegion::Weights, 0, m_disk.slots + m_disk.weightStages));
        Place& place = placeOf(index);
        const bool isSlot = task.stage < m_disk.slots;
        if (!isIn(place, index) || (isSlot && !m_check.isBefore(place.update, index)))
            return broken(index, "its weights may not have come from disk");
        place.copied = index;
        return {};
    }

    Status send(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (task.part != Part::All || !reaches(task, cutsOf(task).gradientsFirst))
            return task.stage < 0 ? Status()
                                  : broken(index, "its home is in memory, and it names a place");
        const std::int32_t tile = m_disk.tileOf(task.group, task.firstElement);
        if (tile >= 0 && range(tile).sendsGradient)
            return sendToSlot(index, &Place::gradient);
        MR_TRY(need(index, DiskRegion::Gradient, m_disk.slots + m_disk.weightStages,
            m_disk.gradientStages));
        return refill(index);
    }

    Status sendWeights(TaskIndex index)
    {
        MR_TRY(needSlot(index));
        if (!rangeOf(index).sendsWeights)
            return broken(index, "its update has its weights from elsewhere");
        return sendToSlot(index, &Place::weights);
    }

    // The place has the state of its tile, or will have; the old content is no longer needed.
    Status sendToSlot(TaskIndex index, MaybeTask Place::*part)
    {
        MR_TRY(needSlot(index));
        Place& place = placeOf(index);
        const bool isItsTile =
            place.filled && !place.update && !(place.*part) &&
            pieceOf(m_check.at(*place.filled)).key() == pieceOf(m_check.at(index)).key();
        if (!isItsTile)
            return broken(index, "the place is not that of its update");
        if (!over(place.before, index))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                "what was in the place before may still be needed");
        place.*part = index;
        return {};
    }

    Status spill(TaskIndex index)
    {
        MR_TRY(need(index, DiskRegion::Gradient, m_disk.slots + m_disk.weightStages,
            m_disk.gradientStages));
        Place& place = placeOf(index);
        if (!isIn(place, index) || place.written)
            return broken(index, "the gradient may not have come from the device");
        Tile& tile = tileOf(index);
        if (tile.spill || !over({tile.state}, index))
            return m_check.broken(PlanRule::HostBytes, index,
                "a late update may still read the gradient that was there");
        place.written = tile.spill = index;
        return {};
    }

    const PlanUnderCheck& m_check;
    const WindowLayout m_window;
    const std::vector<HostCuts> m_cuts; // by group
    const DiskCuts m_disk;
    std::vector<Tile> m_tiles;   // by tile
    std::vector<Place> m_places; // by Task::stage
};

} // namespace

Status checkDisk(const PlanUnderCheck& check)
{
    return DiskCheck(check).run();
}

} // namespace mr
