// CpuMemory: the CPU device's own memory, with a byte budget, and the pinned host memory beside it.
//
// Threads  allocate(), release and find(): engine thread; usage(): any.
// Errors   OutOfMemory names the tag, the size asked for, the budget and the part of it left.
// Units    Bytes as they were asked for; padding and skew are not counted.

#pragma once

#include "core/device/device.h"

#include <map>
#include <mutex>
#include <optional>

namespace mr {

class CpuMemory
{
public:
    explicit CpuMemory(std::size_t budgetBytes)
        : m_budgetBytes(budgetBytes)
    {
    }

    // Zeroed, aligned to 64 bytes. Device memory comes off the budget, pinned memory does not.
    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag);

    // The kind of the allocation that holds all of [data, data + bytes); nothing if none does.
    std::optional<MemoryKind> find(const std::byte* data, std::size_t bytes) const noexcept;

    MemoryUsage usage() const noexcept;

private:
    struct Block {
        std::size_t bytes = 0;
        MemoryKind kind{};
        void* base = nullptr; // address from the system
    };

    static void release(void* owner, std::byte* data, std::size_t bytes) noexcept;

    const std::size_t m_budgetBytes;
    mutable std::mutex m_mutex;
    std::map<const std::byte*, Block> m_blocks; // guarded by m_mutex
    MemoryUsage m_usage;                        // guarded by m_mutex
    unsigned m_skew = 0;                        // guarded by m_mutex
};

} // namespace mr
