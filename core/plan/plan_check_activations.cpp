// Checks activations that the host keeps: each place holds those of the layer and micro-batch that
// its task names.

#include "core/plan/place_check.h"
#include "core/plan/plan_check.h"

#include <vector>

namespace mr {

namespace {

class ActivationCheck
{
public:
    explicit ActivationCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_places(check, Place::Activations | Place::HostActivations)
        , m_sets(static_cast<std::size_t>(check.plan.activations.sets))
        , m_homes(static_cast<std::size_t>(check.plan.inFlight * check.shape.layers()))
    {
    }

    Status run()
    {
        for (TaskIndex i = 0; i < m_check.plan.tasks.size(); ++i)
            MR_TRY(visit(i));
        return {};
    }

private:
    // Content of a place on the device.
    struct Content {
        GroupId group{-1};
        MicroBatch micro{-1};
        TaskKind filler{}; // a forward, a load, or a backward that makes them again

        bool holds(const Task& task, TaskKind from) const
        {
            return group == task.group && micro == task.micro && filler == from;
        }
    };
    // The copy on the host.
    struct Home {
        MicroBatch micro{-1};
        bool loaded = false;
    };

    Status visit(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const bool isBlock = task.group.value > 0 && task.group.value < m_check.shape.layers() - 1;
        switch (task.kind) {
        case TaskKind::Forward:
        case TaskKind::Backward:
            if (!isBlock || m_check.plan.activations.sets <= 1)
                return {};
            MR_TRY(m_places.use(index));
            return work(index);
        case TaskKind::SaveActivations:
        case TaskKind::LoadActivations:
            if (!isBlock || !m_check.plan.keepsActivations(task))
                return missing(index, "the host keeps none of this micro-batch");
            MR_TRY(m_places.use(index));
            return task.kind == TaskKind::SaveActivations ? save(index) : load(index);
        default:
            return {};
        }
    }

    Content& setOf(const Task& task)
    {
        return m_sets[static_cast<std::size_t>(m_check.plan.activationSet(task))];
    }

    Home& homeOf(const Task& task)
    {
        const int slot = task.micro.value % m_check.plan.inFlight;
        return m_homes[static_cast<std::size_t>(slot * m_check.shape.layers() + task.group.value)];
    }

    // Forward writes the place, as does a backward that makes them again; another reads it.
    Status work(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (task.kind == TaskKind::Forward || !m_check.plan.keepsActivations(task))
            fill(task);
        else if (!setOf(task).holds(task, TaskKind::LoadActivations))
            return missing(index, "they may not have come from the host");
        return {};
    }

    void fill(const Task& task) { setOf(task) = {task.group, task.micro, task.kind}; }

    Status save(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        if (!setOf(task).holds(task, TaskKind::Forward))
            return missing(index, "they may not be made yet");
        Home& home = homeOf(task);
        if (home.micro.value >= 0 && !home.loaded)
            return m_check.broken(
                PlanRule::HostBytes, index, "what is there may still be copied to the device");
        home = {task.micro, false};
        return {};
    }

    Status load(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Home& home = homeOf(task);
        if (home.micro != task.micro)
            return missing(index, "they may not be on the host yet");
        home.loaded = true;
        fill(task);
        return {};
    }

    Status missing(TaskIndex index, const char* why) const
    {
        return m_check.broken(PlanRule::ActivationsAtHand, index, why);
    }

    const PlanUnderCheck& m_check;
    PlaceCheck m_places;
    std::vector<Content> m_sets; // by their turns
    std::vector<Home> m_homes;   // by micro-batch in flight, then layer
};

} // namespace

Status checkActivations(const PlanUnderCheck& check)
{
    if (check.plan.activations.sets < 1)
        return check.broken(PlanRule::ActivationsAtHand, "blocks have no place for them");
    return ActivationCheck(check).run();
}

} // namespace mr
