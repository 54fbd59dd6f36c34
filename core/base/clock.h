// The one clock that measurements, plans and events are told in.

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

} // namespace mr
