// The clock of measurements, plans and events, and the one on the wall.

#pragma once

#include <chrono>
#include <cstdint>

namespace mr {

// Nanoseconds on the host's steady clock.
inline std::int64_t nowNs() noexcept
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Milliseconds since 1970, by the wall clock: for people to read, never to measure with.
inline std::int64_t unixMs() noexcept
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch())
        .count();
}

} // namespace mr
