// DriverModel: two rules of a real driver that can turn a closed gate into a deadlock.
//
// - Every call takes the lock of the context. A kernel's first use loads it, and loading waits,
// with
//   the lock held, until all streams are idle.
// - A stream's channel takes a number of commands. The call that enqueues one more waits, with the
//   lock held, until there is space.
//
// A thread of its own is the card. It counts as a deadlock if a call waits with the lock held,
// another thread waits for the lock, and the card has had nothing to run for a second and a half;
// calls fail from then on, so that a test ends. A kernel may run for longer than that.
//
// Source   CUDA C++ Programming Guide, "Lazy Loading"; github.com/meta-pytorch/torchcomms pull 2334
//          and github.com/NVIDIA/nvbench issue 136 (gates and lazy loading); NVIDIA developer forum
//          220629 (1,024 entries, and another stream's launch that waits as well).
// Threads  Any.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace mr::test {

class DriverModel
{
public:
    using Lock = std::unique_lock<std::mutex>;

    // `runOne`: runs a command that is ready and says whether there was one; it may give the lock
    // back meanwhile. `card` guards all that the card and the calls share. Threads but the one that
    // makes the model come `late` to each call, so that this one has enqueued as far as it can.
    DriverModel(
        std::mutex& card, std::function<bool(Lock&)> runOne, std::chrono::microseconds late);
    ~DriverModel();

    // The lock of the context.
    void lock();
    void unlock() { m_context.unlock(); }

    // False: it never will be, because of a deadlock. `isReady` runs under `card`.
    // With the lock of the context.
    bool waitWithLock(const std::function<bool()>& isReady);
    // Without it.
    bool wait(const std::function<bool()>& isReady);

    bool isDeadlocked() const noexcept { return m_isDeadlocked; }

private:
    void runCard();
    void pause(Lock& lock);

    std::mutex& m_card;
    const std::function<bool(Lock&)> m_runOne;
    const std::chrono::microseconds m_late;
    const std::thread::id m_engine = std::this_thread::get_id();
    std::mutex m_context;
    std::condition_variable m_hasRun; // the card looked at its streams
    std::atomic<int> m_waiting = 0;   // for the lock of the context
    std::uint64_t m_progress = 0;     // commands so far; guarded by m_card
    bool m_isRunning = false;         // a command, without the lock; guarded by m_card
    std::atomic<bool> m_isDeadlocked = false;
    std::atomic<bool> m_stops = false;
    std::thread m_thread; // last: uses everything above
};

} // namespace mr::test
