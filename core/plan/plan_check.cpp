#include "core/plan/plan_check.h"

#include "core/plan/plan_text.h"
#include "core/plan/task_traits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mr {

namespace {

constexpr std::array<std::string_view, 21> kRuleNames = {
    "a task waits only for earlier ones",
    "a task runs on a lane of its kind",
    "ranges are cut at 1,024 elements or at the end of the group",
    "no tier holds more than its budget",
    "every layer of every micro-batch runs once, in the order of the policy",
    "no read is staler than the clock allows",
    "weights are resident at the version a task names",
    "a batch is on the device when a task reads it",
    "a slot is refilled only after its last reader",
    "a gradient is finished and at hand when a task reads it",
    "state is on the device when an update needs it, and goes home after",
    "an update waits for the norm that it is clipped by",
    "losses are sent after all of them are there",
    "host bytes are rewritten only after their last copy or reader",
    "every element is updated once, and by its due step",
    "what the host updates is uploaded",
    "columns change owner only while no host job is in flight",
    "an activation between layers is at hand when a task reads it",
    "activations of a block are at hand when its backward reads them",
    "state on disk comes before its update and goes back after",
    "the carry out is what the plan makes of the carry in",
};

Status checkWaits(const PlanUnderCheck& check, TaskIndex index)
{
    const Task& task = check.at(index);
    const std::size_t all = check.plan.waits.size();
    if (task.firstWait > all || task.waitCount > all - task.firstWait) {
        return Status::error(ErrorKind::Internal,
            fmt::format("plan of step {} breaks '{}': task {} names waits the plan does not have",
                check.plan.step, name(PlanRule::WaitsPointBack), index));
    }
    for (const Wait wait : check.plan.waitsOf(task)) {
        if (wait.isCarried() ? wait.index() >= check.in.unfinished.size() : wait.index() >= index)
            return check.broken(PlanRule::WaitsPointBack, index, "a wait names no earlier task");
    }
    return {};
}

Status checkRange(const PlanUnderCheck& check, TaskIndex index)
{
    const Task& task = check.at(index);
    if (task.group.value < 0 || task.group.value >= check.shape.layers())
        return check.broken(PlanRule::RangesAreCut, index, "the model has no such group");
    const std::int64_t elements = check.elementsOf(task);
    const bool isOnTile = check.isOnTile(task);
    const bool isWhole = traitsOf(task.kind).range == TaskRange::WholeGroup && !isOnTile;
    if (isOnTile && !check.tiles().indexOf(task.firstElement, task.elementCount))
        return check.broken(PlanRule::RangesAreCut, index, "it is about no tile of the matrix");
    const bool isOfPass = traitsOf(task.kind).hasMicroBatch; // through a frozen group, too
    const std::int64_t least = isOfPass && elements == 0 ? 0 : 1;
    if (task.firstElement < 0 || task.elementCount < least || task.firstElement > elements ||
        task.elementCount > elements - task.firstElement)
        return check.broken(PlanRule::RangesAreCut, index, "the range leaves the group");
    const std::int64_t end = task.firstElement + task.elementCount;
    if (task.part == Part::Complement && task.elementCount != elements)
        return {}; // whole rows: a tile of the window, which checkWindows looks for
    if (task.firstElement % kCutElements != 0 || (end % kCutElements != 0 && end != elements))
        return check.broken(PlanRule::RangesAreCut, index, "the range is cut elsewhere");
    if (isWhole && task.elementCount != elements)
        return check.broken(PlanRule::RangesAreCut, index, "it is about the whole group");
    return {};
}

// Every task that names a micro-batch names a group as well, but for the fetch of the batch.
Status needGroup(const PlanUnderCheck& check, TaskIndex index)
{
    const Task& task = check.at(index);
    const bool named = task.group.value >= 0 && task.group.value < check.shape.layers();
    if (named || task.kind == TaskKind::FetchBatch || !traitsOf(task.kind).hasMicroBatch)
        return {};
    return check.broken(PlanRule::LayersInOrder, index, "the model has no such group");
}

Status checkBudget(const PlanUnderCheck& check)
{
    const std::array<std::size_t, 3> limits = {
        check.budget.deviceBytes, check.budget.hostBytes, check.budget.diskBytes};
    for (const Tier tier : {Tier::Device, Tier::PinnedHost, Tier::Disk}) {
        const auto i = static_cast<std::size_t>(tier);
        if (check.plan.peakBytes[i] > limits[i]) {
            return check.broken(
                PlanRule::BudgetHolds, fmt::format("{}: {} bytes planned, {} allowed", name(tier),
                                           check.plan.peakBytes[i], limits[i]));
        }
    }
    return {};
}

} // namespace

std::string_view name(PlanRule rule) noexcept
{
    return kRuleNames[static_cast<std::size_t>(rule)];
}

bool PlanUnderCheck::isCovered(
    std::span<const TaskIndex> tasks, const Piece& range, TaskIndex index) const
{
    std::int64_t covered = 0;
    for (const TaskIndex other : tasks) {
        const Piece piece = pieceOf(at(other));
        if (piece.version != range.version || !isBefore(other, index))
            continue;
        covered += std::max<std::int64_t>(
            0, std::min(piece.end, range.end) - std::max(piece.first, range.first));
    }
    return covered >= range.end - range.first;
}

Status PlanUnderCheck::needOver(
    std::span<const TaskIndex> tasks, TaskIndex index, const char* what) const
{
    for (const TaskIndex other : tasks)
        if (overlap(pieceOf(at(other)), pieceOf(at(index))) && !isBefore(other, index))
            return broken(
                PlanRule::HostBytes, index, fmt::format("task {} may still {}", other, what));
    return {};
}

Status PlanUnderCheck::needCarriedOver(
    std::initializer_list<TaskKind> kinds, TaskIndex index, const char* what) const
{
    for (std::size_t i = 0; i < in.unfinished.size(); ++i) {
        const Task& carried = in.unfinished[i].task;
        const bool isOne = std::find(kinds.begin(), kinds.end(), carried.kind) != kinds.end();
        if (isOne && overlap(pieceOf(carried), pieceOf(at(index))) &&
            !clocks.isBefore(Wait::onCarried(static_cast<TaskIndex>(i)), index))
            return broken(PlanRule::HostBytes, index,
                fmt::format("task {} of the carry may still {}", i, what));
    }
    return {};
}

Status PlanUnderCheck::broken(PlanRule rule, const std::string& why) const
{
    return Status::error(ErrorKind::Internal,
        fmt::format("plan of step {} breaks '{}': {}", plan.step, name(rule), why));
}

Status PlanUnderCheck::broken(PlanRule rule, TaskIndex index, const std::string& why) const
{
    return broken(rule, "task " + toText(plan, index) + ": " + why);
}

Status checkTasks(PlanUnderCheck& check)
{
    const auto count = static_cast<TaskIndex>(check.plan.tasks.size());
    check.clocks.reset(check.in.unfinished);
    for (TaskIndex i = 0; i < count; ++i) {
        const Task& task = check.at(i);
        MR_TRY(checkWaits(check, i));
        const TaskTraits& traits = traitsOf(task.kind);
        if (!traits.runsOn(task.lane))
            return check.broken(PlanRule::LaneFits, i, "it can not run there");
        if (traits.range != TaskRange::None)
            MR_TRY(checkRange(check, i));
        if (traits.hasMicroBatch &&
            (task.micro.value < 0 || task.micro.value >= check.plan.microBatches))
            return check.broken(PlanRule::LayersInOrder, i, "the step has no such micro-batch");
        MR_TRY(needGroup(check, i));
        if (task.kind == TaskKind::MoveOwnership && (check.in.hostJob || check.out.hostJob))
            return check.broken(PlanRule::OwnerStable, i, "a host job is in flight");
        check.clocks.begin(task.lane);
        for (const Wait wait : check.plan.waitsOf(task))
            check.clocks.join(wait);
        check.clocks.finish();
    }
    return checkBudget(check);
}

Status checkPlan(const StepPlan& plan, const Carry& carryIn, const Carry& carryOut,
    const ModelShape& shape, const Budget& budget, const OffloadPolicy& policy)
{
    PlanUnderCheck check{plan, carryIn, carryOut, shape, budget, policy, {}};
    if (plan.step != carryIn.step && !check.isTraining())
        return check.broken(PlanRule::CarryFollows,
            fmt::format("it does not follow a carry of step {}", carryIn.step));
    if (plan.answers.size() != shape.groups.size() || plan.inFlight < 1 || plan.batchBuffers < 1)
        return check.broken(PlanRule::LayersInOrder, "its answers are not those of this model");
    MR_TRY(checkTasks(check));
    MR_TRY(checkReads(check));
    MR_TRY(checkStreams(check));
    MR_TRY(checkBoundaries(check));
    MR_TRY(checkActivations(check));
    MR_TRY(checkUpdates(check));
    MR_TRY(checkDisk(check));
    MR_TRY(checkVisits(check));
    MR_TRY(checkWindows(check));
    MR_TRY(checkWindowSums(check));
    return checkCarry(check);
}

} // namespace mr
