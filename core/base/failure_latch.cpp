#include "core/base/failure_latch.h"

#include <utility>

namespace mr {

FailureLatch::Registration::Registration(Registration&& other) noexcept
    : m_latch(std::exchange(other.m_latch, nullptr))
    , m_key(other.m_key)
{
}

FailureLatch::Registration& FailureLatch::Registration::operator=(Registration&& other) noexcept
{
    Registration taken(std::move(other));
    std::swap(m_latch, taken.m_latch);
    std::swap(m_key, taken.m_key);
    return *this;
}

FailureLatch::Registration::~Registration()
{
    if (m_latch)
        m_latch->forget(m_key);
}

void FailureLatch::fail(Status error) noexcept
{
    assert(!error.ok());
    const std::scoped_lock lock(m_mutex);
    if (m_failed.load(std::memory_order_relaxed))
        return;
    m_status = std::move(error);
    m_failed.store(true, std::memory_order_release);
    for (const auto& [key, wake] : m_wakes)
        wake();
}

Status FailureLatch::status() const
{
    const std::scoped_lock lock(m_mutex);
    return m_status;
}

FailureLatch::Registration FailureLatch::onFailure(std::function<void()> wake)
{
    const std::scoped_lock lock(m_mutex);
    if (m_failed.load(std::memory_order_relaxed))
        wake();
    const std::uint64_t key = m_nextKey++;
    m_wakes.emplace(key, std::move(wake));
    return {this, key};
}

void FailureLatch::forget(std::uint64_t key) noexcept
{
    const std::scoped_lock lock(m_mutex);
    m_wakes.erase(key);
}

} // namespace mr
