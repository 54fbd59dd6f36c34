// FailureLatch: the first error of any thread, and the end of everybody's waiting.
//
// A thread that meets an error posts it. The latch keeps the first one and calls everything that
// was registered: close this queue, open this gate for good. Later errors are consequences; the
// latch drops them.
//
// Threads  Any. Callbacks run on the failing thread, under the latch's lock: they must not block
//          and must not call the latch.
// Lifetime Outlives all Registrations. Destroy a Registration before the queue or gate that its
//          callback uses.

#pragma once

#include <millrace/status.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace mr {

class FailureLatch
{
public:
    // Forgets its callback on destruction; once that returned, the callback does not run.
    class Registration
    {
    public:
        Registration() = default;
        Registration(Registration&& other) noexcept;
        Registration& operator=(Registration&& other) noexcept;
        ~Registration();

    private:
        friend class FailureLatch;
        Registration(FailureLatch* latch, std::uint64_t key)
            : m_latch(latch)
            , m_key(key)
        {
        }

        FailureLatch* m_latch = nullptr;
        std::uint64_t m_key = 0;
    };

    // Precondition: !error.ok().
    void fail(Status error) noexcept;

    bool failed() const noexcept { return m_failed.load(std::memory_order_acquire); }

    // ok() until something failed.
    Status status() const;

    // Runs `wake` when the latch fails; at once if it has failed already.
    [[nodiscard]] Registration onFailure(std::function<void()> wake);

private:
    void forget(std::uint64_t key) noexcept;

    std::atomic<bool> m_failed = false;
    mutable std::mutex m_mutex;
    Status m_status;                                        // guarded by m_mutex
    std::map<std::uint64_t, std::function<void()>> m_wakes; // guarded by m_mutex
    std::uint64_t m_nextKey = 1;                            // guarded by m_mutex
};

} // namespace mr
