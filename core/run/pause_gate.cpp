#include "core/run/pause_gate.h"

#include <utility>

namespace mr {

void PauseGate::open()
{
    const std::lock_guard lock(m_mutex);
    m_answers.clear();
    m_isOpen = true;
}

void PauseGate::close()
{
    const std::lock_guard lock(m_mutex);
    m_isOpen = false;
}

std::optional<PauseAnswer> PauseGate::wait(std::chrono::milliseconds most)
{
    std::unique_lock lock(m_mutex);
    m_wake.wait_for(lock, most, [this] { return m_isStopped || !m_answers.empty(); });
    if (m_isStopped || m_answers.empty())
        return std::nullopt;
    PauseAnswer answer = std::move(m_answers.front());
    m_answers.pop_front();
    return answer;
}

void PauseGate::answer(PauseAnswer answer)
{
    {
        const std::lock_guard lock(m_mutex);
        if (!m_isOpen)
            return;
        m_answers.push_back(std::move(answer));
    }
    m_wake.notify_all();
}

void PauseGate::stop() noexcept
{
    {
        const std::lock_guard lock(m_mutex);
        m_isStopped = true;
    }
    m_wake.notify_all();
}

bool PauseGate::isStopped() const
{
    const std::lock_guard lock(m_mutex);
    return m_isStopped;
}

} // namespace mr
