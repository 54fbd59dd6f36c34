// Sleeping on one 32-bit word, with no happens-before edge but that of the word itself.
//
// Why not a condition variable: its mutex orders the sleeper's past before the waker's future.
// ThreadSanitizer would then take a forgotten wait between two streams for an ordered access,
// because both ever touched the same lock. The word's own acquire and release give the intended
// order and no more.
//
// Threads  Any. Never allocates.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace mr {

// Sleeps while `word` holds `expected`, at most `limit`; may return early for no reason, so
// callers loop. Orders nothing.
void futexWait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
    std::chrono::microseconds limit) noexcept;

// Wakes everyone who sleeps on `word`.
void futexWakeAll(const std::atomic<std::uint32_t>& word) noexcept;

} // namespace mr
