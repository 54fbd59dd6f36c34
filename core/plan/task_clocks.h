// TaskClocks: which tasks are certainly over when another one begins.
//
// A lane runs its tasks in order, and a task waits for the tasks that its waits name. So one number
// per lane tells "over before": how far that lane must have come (a vector clock). The builder uses
// it to leave out waits that say nothing new, the checker to prove that needed ones are there.
//
// Threads  One owner.
// Errors   none; callers pass only waits on earlier tasks.
// Order    begin, any number of knows and join, finish; once for each task of a plan, in its order.

#pragma once

#include "core/plan/plan.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

class TaskClocks
{
public:
    // Starts a plan; `carried` are older than all of its tasks. Keeps its memory.
    void reset(std::span<const UnfinishedTask> carried);

    void begin(Lane lane) noexcept;
    // Is the task that `wait` names over, at any timing, when the task that was begun runs?
    bool knows(Wait wait) const noexcept;
    void join(Wait wait) noexcept;
    void finish();

    // Is `first` over when `second` begins? Both are behind their finish().
    bool isBefore(Wait first, TaskIndex second) const noexcept;

    // Later tasks have larger numbers, those of the carry the smallest.
    std::uint32_t numberOf(Wait wait) const noexcept
    {
        return wait.index() + (wait.isCarried() ? 0 : m_carried);
    }

private:
    // By lane: one more than the number of the last task that is over; 0: none.
    using Clock = std::array<std::uint32_t, kLanes>;

    struct Entry {
        Lane lane{};
        Clock clock{}; // when the task is over
    };

    std::vector<Entry> m_tasks; // by number
    std::array<Clock, kLanes> m_lanes{};
    std::uint32_t m_carried = 0;
    Lane m_lane{};
    Clock m_now{};
};

} // namespace mr
