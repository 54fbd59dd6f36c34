#include "gpu/runtime/driver_model.h"

#include <chrono>
#include <utility>

namespace mr::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStuck{1500};
// Between two looks: a thread that only yields keeps a processor from the others.
constexpr std::chrono::microseconds kPause{20};

} // namespace

DriverModel::DriverModel(
    std::mutex& card, std::function<bool(Lock&)> runOne, std::chrono::microseconds late)
    : m_card(card)
    , m_runOne(std::move(runOne))
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
        {
            Lock lock(m_card);
            m_isRunning = true;
            while (!m_isDeadlocked && m_runOne(lock)) // commands may name what is gone by then
                ++m_progress;
            m_isRunning = false;
        }
        m_hasRun.notify_all();
        std::this_thread::sleep_for(kPause); // while commands gather
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

// A kernel may take long: whoever waits sleeps meanwhile.
void DriverModel::pause(Lock& lock)
{
    if (m_isRunning) {
        m_hasRun.wait(lock);
        return;
    }
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
}

bool DriverModel::waitWithLock(const std::function<bool()>& isReady)
{
    std::uint64_t progress = 0;
    Clock::time_point since = Clock::now();
    Lock lock(m_card);
    while (!m_isDeadlocked && !isReady()) {
        if (m_isRunning || m_progress != progress || m_waiting == 0) {
            progress = m_progress;
            since = Clock::now();
        } else if (Clock::now() - since > kStuck) {
            m_isDeadlocked = true;
        }
        pause(lock);
    }
    return !m_isDeadlocked;
}

bool DriverModel::wait(const std::function<bool()>& isReady)
{
    Lock lock(m_card);
    while (!m_isDeadlocked && !isReady())
        pause(lock);
    return !m_isDeadlocked;
}

} // namespace mr::test
