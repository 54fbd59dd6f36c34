// Events, gates and the points they stand for, on the CPU device.
//
// A Point is one recorded point of one stream: a flag of its own, set once. A fresh flag per
// recorded point, with no lock around it, lets ThreadSanitizer see a missing wait: nothing else
// orders two streams.
//
// Threads  PointPool and CpuEvent::move(): engine thread. Waiting and passing: any.

#pragma once

#include "core/device/device.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string>

namespace mr {

// A thread that waits looks this often before it sleeps, which is about 15 us, a thread's wake-up.
inline constexpr int kCpuSpins = 200;
// It sees a stop request after this time at the latest.
inline constexpr std::chrono::milliseconds kCpuPoll{100};

// The first failure inside enqueued work. Sticky: the device is lost from then on.
class CpuFailure
{
public:
    void set(const Status& status) noexcept;
    bool lost() const noexcept { return m_lost.load(std::memory_order_relaxed); }
    // DeviceLost with the first failure's words, or ok().
    Status status() const;

private:
    std::atomic<bool> m_lost = false;
    mutable std::mutex m_mutex; // taken only once something failed
    Status m_status;            // guarded by m_mutex
};

class Point
{
public:
    // True once passed. Then everything the stream did before is seen.
    bool passed() const noexcept;
    void pass() noexcept;
    // False if `giveUp` was requested first.
    bool wait(const std::stop_token& giveUp) const noexcept;
    std::int64_t timeNs() const noexcept { return m_timeNs.load(std::memory_order_relaxed); }

    // An event and every enqueued closure that names a point hold it.
    void hold() noexcept { m_holders.fetch_add(1, std::memory_order_relaxed); }
    void drop() noexcept { m_holders.fetch_sub(1, std::memory_order_release); }

private:
    friend class PointPool;

    std::atomic<std::uint32_t> m_passed = 0;
    std::atomic<int> m_holders = 0;
    std::atomic<std::int64_t> m_timeNs = 0;
};

// Points are used again in turn, the longest unused first; grows while all are held.
class PointPool
{
public:
    // Not passed, held once.
    Point& take();

private:
    static constexpr std::size_t kGrowBy = 256;

    std::deque<Point> m_points; // a deque, because points must not move
    std::size_t m_next = 0;
};

class CpuEvent final : public Event
{
public:
    explicit CpuEvent(CpuFailure& failure) noexcept
        : m_failure(failure)
    {
    }

    ~CpuEvent() override { move(nullptr); }

    Status wait() override;
    bool done() const noexcept override;
    std::int64_t timeNs() const noexcept override;

    // Null until the event is recorded for the first time; it is then done.
    Point* point() const noexcept { return m_point.load(std::memory_order_relaxed); }
    // Takes over one hold of `point`.
    void move(Point* point) noexcept;

private:
    CpuFailure& m_failure;
    std::atomic<Point*> m_point = nullptr;
};

class CpuGate final : public Gate
{
public:
    explicit CpuGate(std::string_view name)
        : m_name(name)
    {
    }

    const std::string& name() const noexcept { return m_name; }

    void open(std::uint64_t generation) noexcept override;
    bool isOpen(std::uint64_t generation) const noexcept override;
    // False if `giveUp` was requested first.
    bool wait(std::uint64_t generation, const std::stop_token& giveUp) const noexcept;

private:
    const std::string m_name;
    std::atomic<std::uint64_t> m_opened = 0;  // the highest generation that is open
    std::atomic<std::uint32_t> m_changes = 0; // futex word of the waiters
};

} // namespace mr
