// A link of limited rate, simulated: copies take at least bytes / rate, one after the other.
//
// Threads  Any; one object per direction. Relaxed atomics only, so that it orders nobody.
// Units    Bytes per second; nanoseconds on the steady clock.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mr {

class CpuLink
{
public:
    // 0: no limit.
    explicit CpuLink(double bytesPerSecond) noexcept
        : m_bytesPerSecond(bytesPerSecond)
    {
    }

    bool limited() const noexcept { return m_bytesPerSecond > 0.0; }

    // Takes the link from now, or from when it is free, and says when the transfer ends.
    std::int64_t reserve(std::size_t bytes) noexcept;
    // Sleeps, then spins the last part: sleeping alone ends some 50 us late.
    static void waitUntil(std::int64_t timeNs) noexcept;

private:
    const double m_bytesPerSecond;
    std::atomic<std::int64_t> m_freeAtNs = 0;
};

} // namespace mr
