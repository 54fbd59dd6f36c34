#include "gpu/runtime/driver_model.h"

#include <chrono>
#include <utility>

namespace mr::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStuck{1500};

} // namespace

DriverModel::DriverModel(
    std::mutex& card, std::function<bool()> runSome, std::chrono::microseconds late)
    : m_card(card)
    , m_runSome(std::move(runSome))
    , m_late(late)
    , m_thread([this] { runCard(); })
{
}

DriverModel::~DriverModel()
{
    m_stops = true;
    m_thread.join();
}

void DriverModel::runCard()
{
    while (!m_stops) {
        bool moved = false;
        {
            const std::lock_guard lock(m_card);
            moved = !m_isDeadlocked && m_runSome(); // its commands may name what is gone by then
        }
        if (moved)
            ++m_progress;
        std::this_thread::yield();
    }
}

void DriverModel::lock()
{
    if (m_late.count() > 0 && std::this_thread::get_id() != m_engine)
        std::this_thread::sleep_for(m_late);
    ++m_waiting;
    m_context.lock();
    --m_waiting;
}

bool DriverModel::isReadyNow(const std::function<bool()>& isReady)
{
    const std::lock_guard lock(m_card);
    return isReady();
}

bool DriverModel::waitWithLock(const std::function<bool()>& isReady)
{
    std::uint64_t progress = m_progress;
    Clock::time_point since = Clock::now();
    while (!m_isDeadlocked) {
        if (isReadyNow(isReady))
            return true;
        if (m_progress != progress || m_waiting == 0) {
            progress = m_progress;
            since = Clock::now();
        } else if (Clock::now() - since > kStuck) {
            m_isDeadlocked = true;
        }
        std::this_thread::yield();
    }
    return false;
}

bool DriverModel::wait(const std::function<bool()>& isReady)
{
    while (!m_isDeadlocked) {
        if (isReadyNow(isReady))
            return true;
        std::this_thread::yield();
    }
    return false;
}

} // namespace mr::test
