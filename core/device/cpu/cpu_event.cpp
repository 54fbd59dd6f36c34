#include "core/device/cpu/cpu_event.h"

#include "core/base/clock.h"
#include "core/base/futex.h"

#include <immintrin.h>

namespace mr {

void CpuFailure::set(const Status& status) noexcept
{
    const std::scoped_lock lock(m_mutex);
    if (m_lost.load(std::memory_order_relaxed))
        return;
    m_status = Status::error(ErrorKind::DeviceLost, "cpu device: " + status.message());
    m_lost.store(true, std::memory_order_relaxed);
}

Status CpuFailure::status() const
{
    if (!lost())
        return {};
    const std::scoped_lock lock(m_mutex);
    return m_status;
}

bool Point::passed() const noexcept
{
    return m_passed.load(std::memory_order_acquire) != 0;
}

void Point::pass() noexcept
{
    m_timeNs.store(nowNs(), std::memory_order_relaxed);
    m_passed.store(1, std::memory_order_release);
    futexWakeAll(m_passed);
}

bool Point::wait(const std::stop_token& giveUp) const noexcept
{
    // Only the load that finds the point passed acquires: an earlier one would order this thread
    // after the last user of the flag.
    for (int i = 0; m_passed.load(std::memory_order_relaxed) == 0; ++i) {
        if (giveUp.stop_requested())
            return false;
        if (i < kCpuSpins)
            _mm_pause();
        else
            futexWait(m_passed, 0, kCpuPoll);
    }
    return passed();
}

Point& PointPool::take()
{
    for (std::size_t tried = 0; tried < m_points.size(); ++tried) {
        Point& point = m_points[m_next];
        m_next = (m_next + 1) % m_points.size();
        // Acquire only the point taken, for the same reason.
        if (point.m_holders.load(std::memory_order_relaxed) != 0)
            continue;
        (void)point.m_holders.load(std::memory_order_acquire);
        point.m_passed.store(0, std::memory_order_relaxed);
        point.m_holders.store(1, std::memory_order_relaxed);
        return point;
    }
    m_next = m_points.size();
    for (std::size_t i = 0; i < kGrowBy; ++i)
        m_points.emplace_back();
    Point& point = m_points[m_next++];
    point.m_holders.store(1, std::memory_order_relaxed);
    return point;
}

Status CpuEvent::wait()
{
    if (const Point* recorded = point())
        recorded->wait({});
    return m_failure.status();
}

bool CpuEvent::done() const noexcept
{
    const Point* recorded = point();
    return !recorded || recorded->passed();
}

std::int64_t CpuEvent::timeNs() const noexcept
{
    const Point* recorded = point();
    return recorded ? recorded->timeNs() : 0;
}

void CpuEvent::move(Point* point) noexcept
{
    if (Point* before = m_point.exchange(point, std::memory_order_relaxed))
        before->drop();
}

void CpuGate::open(std::uint64_t generation) noexcept
{
    std::uint64_t opened = m_opened.load(std::memory_order_relaxed);
    while (opened < generation) {
        if (m_opened.compare_exchange_weak(
                opened, generation, std::memory_order_release, std::memory_order_relaxed)) {
            m_changes.fetch_add(1, std::memory_order_release);
            futexWakeAll(m_changes);
            return;
        }
    }
}

bool CpuGate::isOpen(std::uint64_t generation) const noexcept
{
    return generation <= m_opened.load(std::memory_order_acquire);
}

bool CpuGate::wait(std::uint64_t generation, const std::stop_token& giveUp) const noexcept
{
    for (int i = 0;; ++i) {
        // In this order: an open() after the check changes the word we sleep on.
        const std::uint32_t changes = m_changes.load(std::memory_order_acquire);
        if (isOpen(generation))
            return true;
        if (giveUp.stop_requested())
            return false;
        if (i < kCpuSpins)
            _mm_pause();
        else
            futexWait(m_changes, changes, kCpuPoll);
    }
}

} // namespace mr
