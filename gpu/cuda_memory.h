// CudaMemory: memory of the card within a byte budget, and page-locked host memory beside it.
//
// Pinned memory is an anonymous mapping that is registered with CUDA, in the size that was asked
// for: cudaHostAlloc gives memory of a device file, which the disk's asynchronous reads refuse, and
// pools round up to powers of two. Several threads make the pages before they are registered.
//
// Threads    allocate() and release: engine thread, and blocking; find(), usage(): any.
// Ownership  Buffers point back here and go first.
// Errors     OutOfMemory names the tag, the bytes asked for, the budget and the bytes left in it.
// Units      Bytes as they were asked for; padding and skew are not counted.

#pragma once

#include "core/device/device.h"
#include "gpu/cuda_failure.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <optional>

namespace mr::gpu {

class CudaMemory
{
public:
    CudaMemory(std::size_t budgetBytes, CudaFailure& failure)
        : m_budgetBytes(budgetBytes)
        , m_failure(failure)
    {
    }

    // Zeroed; card memory aligned to 256 bytes, pinned memory to 64. `stream` is used for zeroing
    // and waited for. Pinned memory does not come off the budget.
    Result<Buffer> allocate(
        std::size_t bytes, MemoryKind kind, std::string_view tag, cudaStream_t stream);

    // Nothing if no single allocation holds all of [data, data + bytes).
    std::optional<MemoryKind> find(const std::byte* data, std::size_t bytes) const noexcept;

    MemoryUsage usage() const noexcept;
    // Free bytes of the budget or the card, whichever has less; nothing if the card does not say.
    std::optional<std::size_t> freeBytes() const noexcept;

private:
    struct Block {
        std::size_t bytes = 0;
        MemoryKind kind{};
        std::byte* base = nullptr;   // start of the mapping; pinned only
        std::size_t mappedBytes = 0; // pinned only
    };

    struct Taken {
        std::byte* data = nullptr;
        Block block;
    };

    Result<Taken> takeDevice(std::size_t bytes, std::string_view tag, cudaStream_t stream);
    Result<Taken> takePinned(std::size_t bytes, std::string_view tag);
    Buffer keep(const Taken& taken);
    static void release(void* owner, std::byte* data, std::size_t bytes) noexcept;

    const std::size_t m_budgetBytes;
    CudaFailure& m_failure;
    unsigned m_skew = 0; // engine thread
    mutable std::mutex m_mutex;
    std::map<const std::byte*, Block> m_blocks; // guarded by m_mutex
    MemoryUsage m_usage;                        // guarded by m_mutex
};

} // namespace mr::gpu
