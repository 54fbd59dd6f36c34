// CudaMemory: memory of the card within a byte budget, and page-locked host memory beside it.
//
// Pinned memory is an anonymous mapping that is registered with CUDA, in the size that was asked
// for: cudaHostAlloc gives memory of a device file, which the disk's asynchronous reads refuse, and
// pools round up to powers of two. Several threads make the pages before they are registered.
//
// cudaMalloc gives whole pages of 2 MiB, so buffers of the card that are asked for together share
// one block of it: a run with hundreds of arrays loses one such rounding, not one an array.
//
// Threads    allocate() and release: engine thread, and blocking; find(), usage(): any.
// Ownership  Buffers point back here and go first.
// Errors     OutOfMemory names the tag, the bytes asked for, the budget and the bytes left in it;
//            of buffers together their number, and the tag and bytes of the largest.
// Units      Bytes as they were asked for; padding (below 256 bytes a buffer of the card) and skew
//            are not counted.

#pragma once

#include "core/device/device.h"
#include "gpu/cuda_failure.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

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

    // Card memory, as allocate(): one call of cudaMalloc for all, one of cudaFree with the last.
    Result<std::vector<Buffer>> allocateTogether(
        std::span<const BufferWish> wishes, cudaStream_t stream);

    // Nothing if no single buffer holds all of [data, data + bytes).
    std::optional<MemoryKind> find(const std::byte* data, std::size_t bytes) const noexcept;

    MemoryUsage usage() const noexcept;
    // Free bytes of the budget or the card, whichever has less; nothing if the card does not say.
    std::optional<std::size_t> freeBytes() const noexcept;

private:
    struct Block {
        std::size_t bytes = 0;
        MemoryKind kind{};
        std::byte* base = nullptr;   // start of the mapping, or of the card's block
        std::size_t mappedBytes = 0; // pinned only
    };

    struct Taken {
        std::byte* data = nullptr;
        Block block;
    };

    Status checkBudget(std::span<const BufferWish> wishes) const;
    Result<std::byte*> takeCard(
        std::size_t bytes, std::span<const BufferWish> wishes, cudaStream_t stream);
    Result<Taken> takePinned(std::size_t bytes, std::string_view tag);
    Buffer keep(const Taken& taken);
    static void release(void* owner, std::byte* data, std::size_t bytes) noexcept;

    const std::size_t m_budgetBytes;
    CudaFailure& m_failure;
    unsigned m_skew = 0; // engine thread
    mutable std::mutex m_mutex;
    std::map<const std::byte*, Block> m_blocks; // guarded by m_mutex
    // Buffers that live in each block of the card; guarded by m_mutex.
    std::map<const std::byte*, std::size_t> m_shares;
    MemoryUsage m_usage; // guarded by m_mutex
};

} // namespace mr::gpu
