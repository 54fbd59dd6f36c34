#include "core/device/cpu/cpu_link.h"

#include "core/base/clock.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace mr {

std::int64_t CpuLink::reserve(std::size_t bytes) noexcept
{
    const std::int64_t now = nowNs();
    const auto duration =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / m_bytesPerSecond * 1e9));
    std::int64_t freeAt = m_freeAtNs.load(std::memory_order_relaxed);
    while (true) {
        const std::int64_t end = std::max(now, freeAt) + duration;
        if (m_freeAtNs.compare_exchange_weak(freeAt, end, std::memory_order_relaxed))
            return end;
    }
}

void CpuLink::waitUntil(std::int64_t timeNs) noexcept
{
    constexpr std::int64_t kSpinNs = 100'000;
    const std::int64_t left = timeNs - nowNs();
    if (left > kSpinNs)
        std::this_thread::sleep_for(std::chrono::nanoseconds(left - kSpinNs));
    while (nowNs() < timeNs)
        _mm_pause();
}

} // namespace mr
