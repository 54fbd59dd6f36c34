#include "core/plan/plan_text.h"

#include "core/plan/task_traits.h"

#include <fmt/format.h>

#include <array>

namespace mr {

namespace {

constexpr std::array<std::string_view, kLanes> kLaneNames = {
    "Compute", "CopyIn", "CopyOut", "Host", "DiskIn", "DiskOut", "DiskWeights", "DiskBoundaries"};
constexpr std::array<std::string_view, 3> kTierNames = {"device", "pinned host", "disk"};
constexpr std::array<std::string_view, 3> kPartNames = {"", " urgent", " complement"};

void appendPlace(std::string& text, const Task& task)
{
    if (task.group.value >= 0)
        text += fmt::format(" g{}", task.group.value);
    if (task.micro.value >= 0)
        text += fmt::format(" m{}", task.micro.value);
    if (task.elementCount > 0) {
        text += fmt::format(" [{},{})", task.firstElement, task.firstElement + task.elementCount);
    }
    text += kPartNames[static_cast<std::size_t>(task.part)];
    if (task.ownership.value >= 0)
        text += fmt::format(" o{}", task.ownership.value);
    if (task.stage >= 0)
        text += fmt::format(" s{}", task.stage);
}

} // namespace

std::string_view name(TaskKind kind) noexcept
{
    return traitsOf(kind).name;
}

std::string_view name(Lane lane) noexcept
{
    return kLaneNames[static_cast<std::size_t>(lane)];
}

std::string_view name(Tier tier) noexcept
{
    return kTierNames[static_cast<std::size_t>(tier)];
}

std::string toText(const StepPlan& plan, TaskIndex index)
{
    const Task& task = plan.tasks[index];
    std::string text = fmt::format("{} ", index);
    text += name(task.kind);
    text += " ";
    text += name(task.lane);
    appendPlace(text, task);
    text += fmt::format(" v{}", task.version);
    const auto waits = plan.waitsOf(task);
    if (!waits.empty())
        text += " <-";
    for (const Wait wait : waits)
        text += (wait.isCarried() ? " c" : " ") + std::to_string(wait.index());
    return text;
}

std::string toText(const StepPlan& plan)
{
    std::string text;
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i)
        text += toText(plan, i) + "\n";
    return text;
}

} // namespace mr
