// Activations of blocks that the host keeps: there when backward reads them, and no place on the
// device or the host filled again while it is needed.

#include "core/plan/plan_check.h"

#include <vector>

namespace mr {

namespace {

class ActivationCheck
{
public:
    explicit ActivationCheck(const PlanUnderCheck& check)
        : m_check(check)
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
    // On the device, and what is in it.
    struct Set {
        GroupId group{-1};
        MicroBatch micro{-1};
        MaybeTask filled; // by a forward or a load; of what is made again, by its backward
        MaybeTask user;   // a layer, the last; all run on Compute
        MaybeTask save;

        bool holds(const Task& task) const { return group == task.group && micro == task.micro; }
    };
    // The copy on the host.
    struct Home {
        MicroBatch micro{-1};
        MaybeTask save;
        MaybeTask load;
    };

    Status visit(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const bool isBlock = task.group.value > 0 && task.group.value < m_check.shape.layers() - 1;
        switch (task.kind) {
        case TaskKind::Forward:
        case TaskKind::Backward:
            return isBlock && m_check.plan.activations.sets > 1 ? work(index) : Status();
        case TaskKind::SaveActivations:
        case TaskKind::LoadActivations:
            if (!isBlock || !m_check.plan.keepsActivations(task))
                return missing(index, "the host keeps none of this micro-batch");
            return task.kind == TaskKind::SaveActivations ? save(index) : load(index);
        default:
            return {};
        }
    }

    Set& setOf(const Task& task)
    {
        return m_sets[static_cast<std::size_t>(m_check.plan.activationSet(task))];
    }

    Home& homeOf(const Task& task)
    {
        const int slot = task.micro.value % m_check.plan.inFlight;
        return m_homes[static_cast<std::size_t>(slot * m_check.shape.layers() + task.group.value)];
    }

    bool isOver(const MaybeTask& task, TaskIndex index) const
    {
        return !task || m_check.isBefore(*task, index);
    }

    // Forward writes the place, as does a backward that makes them again; another reads it.
    Status work(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Set& set = setOf(task);
        if (task.kind == TaskKind::Backward && m_check.plan.keepsActivations(task)) {
            const bool isLoaded = set.holds(task) && set.filled &&
                                  m_check.at(*set.filled).kind == TaskKind::LoadActivations;
            if (!isLoaded || !m_check.isBefore(*set.filled, index))
                return missing(index, "they may not have come from the host");
            set.user = index;
            return {};
        }
        MR_TRY(fill(index));
        setOf(task).user = index;
        return {};
    }

    Status fill(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Set& set = setOf(task);
        if (!isOver(set.filled, index) || !isOver(set.user, index) || !isOver(set.save, index))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                "the activations that are there may still be read or copied");
        set = {task.group, task.micro, index, {}, {}};
        return {};
    }

    Status save(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Set& set = setOf(task);
        const bool isMade =
            set.holds(task) && set.filled && m_check.at(*set.filled).kind == TaskKind::Forward;
        if (!isMade || !m_check.isBefore(*set.filled, index))
            return missing(index, "they may not be made yet");
        Home& home = homeOf(task);
        if (home.save && !m_check.isBefore(home.load, index))
            return m_check.broken(
                PlanRule::HostBytes, index, "what is there may still be copied to the device");
        set.save = index;
        home = {task.micro, index, {}};
        return {};
    }

    Status load(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        Home& home = homeOf(task);
        if (home.micro != task.micro || !home.save || !m_check.isBefore(*home.save, index))
            return missing(index, "they may not be on the host yet");
        home.load = index;
        return fill(index);
    }

    Status missing(TaskIndex index, const char* why) const
    {
        return m_check.broken(PlanRule::ActivationsAtHand, index, why);
    }

    const PlanUnderCheck& m_check;
    std::vector<Set> m_sets;   // by their turns
    std::vector<Home> m_homes; // by micro-batch in flight, then layer
};

} // namespace

Status checkActivations(const PlanUnderCheck& check)
{
    if (check.plan.activations.sets < 1)
        return check.broken(PlanRule::ActivationsAtHand, "blocks have no place for them");
    return ActivationCheck(check).run();
}

} // namespace mr
