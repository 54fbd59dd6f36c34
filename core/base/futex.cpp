#include "core/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace mr {

void futexWait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
    std::chrono::microseconds limit) noexcept
{
    static_assert(sizeof(word) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
    timespec timeout{};
    timeout.tv_sec = static_cast<std::time_t>(limit.count() / 1'000'000);
    timeout.tv_nsec = static_cast<long>(limit.count() % 1'000'000) * 1000;
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}

void futexWakeAll(const std::atomic<std::uint32_t>& word) noexcept
{
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace mr
