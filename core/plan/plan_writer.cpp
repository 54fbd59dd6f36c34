#include "core/plan/plan_writer.h"

#include "core/plan/traversal.h"

#include <algorithm>

namespace mr {

namespace {

// Values that keep their memory.
void clear(StepPlan& plan)
{
    StepPlan empty;
    std::swap(empty.tasks, plan.tasks);
    std::swap(empty.waits, plan.waits);
    std::swap(empty.answers, plan.answers);
    plan = std::move(empty);
    plan.tasks.clear();
    plan.waits.clear();
    plan.answers.clear();
}

} // namespace

void PlanWriter::begin(StepIndex step, const Carry& in, StepPlan& plan)
{
    m_in = in;
    m_plan = &plan;
    clear(plan);
    plan.step = step;
    plan.batchBuffers = batchBuffers(1);
    plan.stateCodec = m_terms.policy.stateCodec;
    m_clocks.reset(m_in.unfinished);
    m_places.begin();
    m_candidates.clear();
    m_groups.clear();
}

Task PlanWriter::make(TaskKind kind, Lane lane, GroupId group, StepIndex version) const
{
    Task task;
    task.kind = kind;
    task.lane = lane;
    task.group = group;
    task.version = version;
    if (group.value >= 0)
        task.elementCount = m_terms.elements(group);
    return task;
}

void PlanWriter::waitFor(std::optional<Wait> wait)
{
    if (wait)
        m_candidates.push_back(*wait);
}

void PlanWriter::waitForCompute()
{
    const std::vector<Task>& tasks = m_plan->tasks;
    const auto last = std::find_if(
        tasks.rbegin(), tasks.rend(), [](const Task& task) { return task.lane == Lane::Compute; });
    if (last != tasks.rend())
        m_candidates.push_back(Wait::onTask(static_cast<TaskIndex>(tasks.rend() - last - 1)));
}

void PlanWriter::waitForCarried(GroupId group)
{
    for (std::size_t i = 0; i < m_in.unfinished.size(); ++i) {
        const GroupId other = m_in.unfinished[i].task.group;
        if (group.value < 0 && other.value >= 0 && m_terms.streamsGroup(other))
            continue; // the fetch of its weights waits
        if (group.value < 0 || other.value < 0 || other == group)
            m_candidates.push_back(Wait::onCarried(static_cast<TaskIndex>(i)));
    }
}

Wait PlanWriter::emit(const Task& task)
{
    StepPlan& plan = *m_plan;
    const PlaceUses uses(plan, task);
    for (const PlaceUse& use : uses.all())
        m_places.visitBefore(use, task.lane,
            [this](TaskIndex before) { m_candidates.push_back(Wait::onTask(before)); });
    m_clocks.begin(task.lane);
    // The latest first: then the waits it implies are known, and earlier ones never imply later.
    std::sort(m_candidates.begin(), m_candidates.end(),
        [this](Wait a, Wait b) { return m_clocks.numberOf(a) > m_clocks.numberOf(b); });
    const std::size_t firstWait = plan.waits.size();
    for (const Wait wait : m_candidates) {
        if (m_clocks.knows(wait))
            continue;
        m_clocks.join(wait);
        plan.waits.push_back(wait);
    }
    m_candidates.clear();
    m_clocks.finish();
    std::reverse(plan.waits.begin() + static_cast<std::ptrdiff_t>(firstWait), plan.waits.end());
    Task& added = plan.tasks.emplace_back(task);
    added.firstWait = static_cast<std::uint32_t>(firstWait);
    added.waitCount = static_cast<std::uint16_t>(plan.waits.size() - firstWait);
    const auto index = static_cast<TaskIndex>(plan.tasks.size() - 1);
    for (const PlaceUse& use : uses.all())
        m_places.note(use, task.lane, index);
    return Wait::onTask(index);
}

} // namespace mr
