// Commands that this process has enqueued on cards: kernels, copies, events and waits.
//
// A card's channel takes about 1,024 of them; with more, the call that enqueues blocks. So
// StepLanes bounds the commands behind a closed gate.
//
// Threads  Any; the engine thread counts.

#pragma once

#include <atomic>
#include <cstdint>

namespace mr::gpu {

inline std::atomic<std::uint64_t> g_commands = 0;

inline void countCommand() noexcept
{
    g_commands.fetch_add(1, std::memory_order_relaxed);
}

} // namespace mr::gpu
