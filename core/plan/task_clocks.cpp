#include "core/plan/task_clocks.h"

#include <algorithm>

namespace mr {

namespace {

constexpr std::size_t indexOf(Lane lane) noexcept
{
    return static_cast<std::size_t>(lane);
}

} // namespace

void TaskClocks::reset(std::span<const UnfinishedTask> carried)
{
    m_tasks.clear();
    m_lanes = {};
    m_carried = static_cast<std::uint32_t>(carried.size());
    for (const UnfinishedTask& unfinished : carried) {
        begin(unfinished.task.lane);
        finish();
    }
}

void TaskClocks::begin(Lane lane) noexcept
{
    m_lane = lane;
    m_now = m_lanes[indexOf(lane)];
}

bool TaskClocks::knows(Wait wait) const noexcept
{
    const std::uint32_t number = numberOf(wait);
    return m_now[indexOf(m_tasks[number].lane)] > number;
}

void TaskClocks::join(Wait wait) noexcept
{
    const Clock& other = m_tasks[numberOf(wait)].clock;
    for (std::size_t lane = 0; lane < kLanes; ++lane)
        m_now[lane] = std::max(m_now[lane], other[lane]);
}

void TaskClocks::finish()
{
    m_now[indexOf(m_lane)] = static_cast<std::uint32_t>(m_tasks.size()) + 1;
    m_tasks.push_back({m_lane, m_now});
    m_lanes[indexOf(m_lane)] = m_now;
}

bool TaskClocks::isBefore(Wait first, TaskIndex second) const noexcept
{
    const std::uint32_t number = numberOf(first);
    const std::uint32_t later = numberOf(Wait::onTask(second));
    return number < later && m_tasks[later].clock[indexOf(m_tasks[number].lane)] > number;
}

} // namespace mr
