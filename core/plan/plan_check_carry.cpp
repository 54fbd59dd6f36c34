// Checks the end of a step: every element is updated once, and the carry follows from the one
// before.

#include "core/plan/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mr {

namespace {

bool isSame(const PendingUpdate& a, const PendingUpdate& b)
{
    return a.group == b.group && a.part == b.part && a.ownership == b.ownership &&
           a.version == b.version && a.dueStep == b.dueStep && a.firstElement == b.firstElement &&
           a.elementCount == b.elementCount;
}

bool contains(const std::vector<PendingUpdate>& list, const PendingUpdate& update)
{
    return std::any_of(list.begin(), list.end(),
        [&](const PendingUpdate& other) { return isSame(other, update); });
}

// --- every element once ---

void sortPieces(std::vector<Piece>& pieces)
{
    std::sort(pieces.begin(), pieces.end(),
        [](const Piece& a, const Piece& b) { return a.key() < b.key(); });
}

// Do `pieces` (sorted) fill all `ranges` (sorted, apart) and nothing else, each element once?
bool isPartition(const std::vector<Piece>& pieces, const std::vector<Piece>& ranges)
{
    auto piece = pieces.begin();
    for (const Piece& range : ranges) {
        std::int64_t at = range.first;
        while (at < range.end && piece != pieces.end() && piece->group == range.group &&
               piece->version == range.version && piece->first == at)
            at = (piece++)->end;
        if (at != range.end)
            return false;
    }
    return piece == pieces.end();
}

Status checkPending(const PlanUnderCheck& check)
{
    for (const PendingUpdate& update : check.out.pending) {
        const bool made = check.isTraining() && update.version == check.plan.step;
        if (!made && !contains(check.in.pending, update))
            return check.broken(PlanRule::CarryFollows, "a pending update is made up");
        const auto group = static_cast<std::size_t>(update.group.value);
        if (update.group.value < 0 || group >= check.plan.answers.size())
            return check.broken(PlanRule::CarryFollows, "a pending update of no group");
        const int stale = check.plan.answers[group].maxStaleSteps;
        if (made && update.dueStep > update.version + 1 + stale)
            return check.broken(
                PlanRule::NotStaler, fmt::format("an update of group {} is left for later", group));
    }
    return {};
}

Status checkUpdatedOnce(const PlanUnderCheck& check)
{
    std::vector<Piece> pieces;
    std::vector<Piece> ranges;
    for (const Task& task : check.plan.tasks) {
        if (task.kind == TaskKind::UpdateOnDevice || task.kind == TaskKind::UpdateOnHost)
            pieces.push_back(pieceOf(task));
    }
    for (const PendingUpdate& update : check.in.pending) {
        const bool kept = contains(check.out.pending, update);
        const bool flush = !check.isTraining() && check.plan.microBatches == 0;
        const bool due =
            flush ? update.isExact() : check.isTraining() && update.dueStep <= check.plan.step;
        if (kept && due)
            return check.broken(PlanRule::UpdatedOnce,
                fmt::format("an update of group {} was due", update.group.value));
        if (!kept)
            ranges.push_back(pieceOf(update));
    }
    if (check.isTraining()) {
        for (std::int32_t g = 0; g < check.shape.layers(); ++g)
            if (check.elements(GroupId{g}) > 0)
                ranges.push_back({GroupId{g}, check.plan.step, 0, check.elements(GroupId{g})});
        for (const PendingUpdate& update : check.out.pending) {
            if (update.version == check.plan.step)
                pieces.push_back(pieceOf(update));
        }
    }
    sortPieces(pieces);
    sortPieces(ranges);
    if (!isPartition(pieces, ranges))
        return check.broken(
            PlanRule::UpdatedOnce, "updates and what is left pending do not fill the groups once");
    return {};
}

Status checkUploads(const PlanUnderCheck& check)
{
    std::vector<Piece> updates;
    std::vector<Piece> uploads;
    for (const Task& task : check.plan.tasks) {
        const bool ranged =
            task.kind == TaskKind::UpdateOnHost || task.kind == TaskKind::FetchWeights;
        if (!ranged || check.streams(task.group))
            continue; // else the host is the home of the new weights
        if (task.kind == TaskKind::UpdateOnHost)
            updates.push_back(pieceOf(task));
        else
            uploads.push_back(pieceOf(task));
    }
    sortPieces(updates);
    sortPieces(uploads);
    const bool same = std::equal(updates.begin(), updates.end(), uploads.begin(), uploads.end(),
        [](const Piece& a, const Piece& b) { return a.key() == b.key(); });
    if (!same)
        return check.broken(
            PlanRule::UploadFollows, "host updates and uploads are not the same ranges");
    return {};
}

// --- the carry ---

bool isSameTask(const Task& a, const Task& b)
{
    return a.kind == b.kind && a.lane == b.lane && a.part == b.part && a.group == b.group &&
           a.micro == b.micro && a.ownership == b.ownership && a.version == b.version &&
           a.firstElement == b.firstElement && a.elementCount == b.elementCount;
}

Status checkUnfinished(const PlanUnderCheck& check)
{
    std::vector<bool> continued(check.in.unfinished.size(), false);
    for (const UnfinishedTask& left : check.out.unfinished) {
        const std::size_t index = left.origin.index();
        const bool carried = left.origin.isCarried();
        if (index >= (carried ? check.in.unfinished.size() : check.plan.tasks.size()))
            return check.broken(PlanRule::CarryFollows, "an unfinished task of no origin");
        const Task& origin = carried ? check.in.unfinished[index].task : check.plan.tasks[index];
        if (!isSameTask(left.task, origin))
            return check.broken(PlanRule::CarryFollows, "an unfinished task is not its origin");
        if (carried)
            continued[index] = true;
    }
    for (std::size_t i = 0; i < continued.size(); ++i) {
        bool over = continued[i];
        for (TaskIndex t = 0; t < check.plan.tasks.size() && !over; ++t)
            over = check.clocks.isBefore(Wait::onCarried(static_cast<TaskIndex>(i)), t);
        if (!over)
            return check.broken(
                PlanRule::CarryFollows, fmt::format("unfinished task {} of the carry is lost", i));
    }
    return {};
}

// The slots at the end of the plan, as far as they hold frozen weights. A flush uses no slot.
std::vector<HeldSlot> heldAfter(const PlanUnderCheck& check)
{
    if (!check.isTraining())
        return check.in.heldSlots;
    std::vector<HeldSlot> held = check.in.heldSlots;
    held.resize(static_cast<std::size_t>(std::max(0, check.plan.weightSlots)));
    for (const Task& task : check.plan.tasks) {
        const bool isFetch = task.kind == TaskKind::FetchFrozen ||
                             (task.kind == TaskKind::FetchWeights && check.streams(task.group));
        if (isFetch && task.slot < held.size())
            held[task.slot].group = check.fetchesFrozen(task.group) ? task.group : GroupId{-1};
    }
    const bool isAny =
        std::ranges::any_of(held, [](const HeldSlot& slot) { return slot.group.value >= 0; });
    return isAny ? held : std::vector<HeldSlot>();
}

Status checkLeft(const PlanUnderCheck& check)
{
    const Carry& in = check.in;
    const Carry& out = check.out;
    if (out.step != check.plan.step)
        return check.broken(
            PlanRule::CarryFollows, fmt::format("the carry is of step {}", out.step));
    if (out.normByGroup != (check.isTraining() ? check.plan.normByGroup : in.normByGroup))
        return check.broken(PlanRule::CarryFollows, "the carry names another kind of norm");
    const int into = in.stepsIntoWindow + (check.isTraining() ? 1 : 0);
    const int length = check.plan.answers.front().windowSteps;
    const bool closed = check.isTraining() && into >= length;
    if (out.window != in.window + (closed ? 1 : 0) || out.stepsIntoWindow != (closed ? 0 : into))
        return check.broken(PlanRule::CarryFollows, "the window does not go on");
    const bool selects = std::any_of(check.plan.tasks.begin(), check.plan.tasks.end(),
        [](const Task& task) { return task.kind == TaskKind::SelectColumns; });
    if (!selects && out.ownership != in.ownership)
        return check.broken(PlanRule::CarryFollows, "columns change owner without a choice");
    if (out.hostJob.has_value() && !in.hostJob.has_value() && !closed)
        return check.broken(PlanRule::CarryFollows, "a host job is made up");
    const std::vector<HeldSlot> held = heldAfter(check);
    const bool sameSlots = std::ranges::equal(out.heldSlots, held,
        [](const HeldSlot& a, const HeldSlot& b) { return a.group == b.group; });
    if (!sameSlots)
        return check.broken(
            PlanRule::CarryFollows, "a slot is said to hold other frozen weights than it does");
    return checkUnfinished(check);
}

} // namespace

Status checkCarry(const PlanUnderCheck& check)
{
    MR_TRY(checkPending(check));
    if (!check.isByColumns()) { // else checkWindows did
        MR_TRY(checkUpdatedOnce(check));
        MR_TRY(checkUploads(check));
    }
    return checkLeft(check);
}

} // namespace mr
