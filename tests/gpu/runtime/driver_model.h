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
// calls fail from then on, so that a test ends.
//
// Source   CUDA C++ Programming Guide, "Lazy Loading"; github.com/meta-pytorch/torchcomms pull 2334
//          and github.com/NVIDIA/nvbench issue 136 (gates and lazy loading); NVIDIA developer forum
//          220629 (1,024 entries, and another stream's launch that waits as well).
// Threads  Any.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace mr::test {

class DriverModel
{
public:
    // `runSome`: runs commands that are ready and says whether there were any. `card` guards all
    // that the card and the calls share. Threads but the one that makes the model come `late` to
    // each call, so that this one has enqueued as far as it can.
    DriverModel(std::mutex& card, std::function<bool()> runSome, std::chrono::microseconds late);
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
    bool isReadyNow(const std::function<bool()>& isReady);

    std::mutex& m_card;
    const std::function<bool()> m_runSome;
    const std::chrono::microseconds m_late;
    const std::thread::id m_engine = std::this_thread::get_id();
    std::mutex m_context;
    std::atomic<int> m_waiting = 0; // for the lock of the context
    std::atomic<std::uint64_t> m_progress = 0;
    std::atomic<bool> m_isDeadlocked = false;
    std::atomic<bool> m_stops = false;
    std::thread m_thread; // last: uses everything above
};

} // namespace mr::test
