// BoundedQueue: a fixed number of values between threads; blocks when full, blocks when empty.
//
// Threads  Any number of producers and consumers.
// Errors   After close() nothing is accepted; values accepted before are still handed out.
// Order    First in, first out.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace mr {

template <typename T>
class BoundedQueue
{
public:
    // `capacity` >= 1.
    explicit BoundedQueue(std::size_t capacity)
        : m_capacity(capacity)
    {
    }

    // Blocks while full. False, and the value is dropped, once the queue is closed.
    bool push(T value)
    {
        std::unique_lock lock(m_mutex);
        m_notFull.wait(lock, [&] { return m_closed || m_values.size() < m_capacity; });
        if (m_closed)
            return false;
        m_values.push_back(std::move(value));
        m_notEmpty.notify_one();
        return true;
    }

    // Blocks while empty. Nothing once the queue is closed and drained.
    std::optional<T> pop()
    {
        std::unique_lock lock(m_mutex);
        m_notEmpty.wait(lock, [&] { return m_closed || !m_values.empty(); });
        return takeFront();
    }

    // Nothing if the queue is empty now. Never blocks.
    std::optional<T> tryPop()
    {
        const std::scoped_lock lock(m_mutex);
        return takeFront();
    }

    // Wakes everybody who waits.
    void close() noexcept
    {
        const std::scoped_lock lock(m_mutex);
        m_closed = true;
        m_notFull.notify_all();
        m_notEmpty.notify_all();
    }

    bool closed() const noexcept
    {
        const std::scoped_lock lock(m_mutex);
        return m_closed;
    }

private:
    std::optional<T> takeFront()
    {
        if (m_values.empty())
            return std::nullopt;
        std::optional<T> value(std::move(m_values.front()));
        m_values.pop_front();
        m_notFull.notify_one();
        return value;
    }

    const std::size_t m_capacity;
    mutable std::mutex m_mutex;
    std::condition_variable m_notFull;
    std::condition_variable m_notEmpty;
    std::deque<T> m_values; // guarded by m_mutex
    bool m_closed = false;  // guarded by m_mutex
};

} // namespace mr
