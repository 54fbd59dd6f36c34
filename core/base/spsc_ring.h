// SpscRing: fixed-size records from one thread to one other; full means dropped and counted.
//
// Threads  push() by one thread, pop() by one other, dropped() by any. Wait-free; allocates
//          only in the constructor.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace mr {

template <typename T>
class SpscRing
{
    static_assert(std::is_trivially_copyable_v<T>);

public:
    // `capacity` >= 1 values fit.
    explicit SpscRing(std::size_t capacity)
        : m_slots(capacity)
    {
    }

    // False, and counted, if the ring is full.
    bool push(const T& value) noexcept
    {
        const std::uint64_t tail = m_tail.load(std::memory_order_relaxed);
        if (tail - m_head.load(std::memory_order_acquire) == m_slots.size()) {
            m_dropped.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        m_slots[tail % m_slots.size()] = value;
        m_tail.store(tail + 1, std::memory_order_release);
        return true;
    }

    // False if the ring is empty.
    bool pop(T& out) noexcept
    {
        const std::uint64_t head = m_head.load(std::memory_order_relaxed);
        if (head == m_tail.load(std::memory_order_acquire))
            return false;
        out = m_slots[head % m_slots.size()];
        m_head.store(head + 1, std::memory_order_release);
        return true;
    }

    std::uint64_t dropped() const noexcept { return m_dropped.load(std::memory_order_relaxed); }

private:
    std::vector<T> m_slots;
    alignas(64) std::atomic<std::uint64_t> m_head = 0; // values taken out, ever
    alignas(64) std::atomic<std::uint64_t> m_tail = 0; // values put in, ever
    std::atomic<std::uint64_t> m_dropped = 0;
};

} // namespace mr
