#include "gpu/cuda_memory.h"

#include "core/base/bytes.h"
#include "gpu/pinned_mapping.h"

#include <algorithm>
#include <string>

namespace mr::gpu {
namespace {

// AdamW walks four arrays at once, and arrays that start a power of two apart cost it a factor:
// so each large one starts a step further into its pages than the one before. The step is no
// multiple of 4 KiB.
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSkewStepBytes = 4096 + 5 * kAlignment;
constexpr unsigned kSkewSteps = 13;
constexpr std::size_t kSkewFromBytes = std::size_t{64} << 10;

Status outOfMemory(std::string text)
{
    return Status::error(ErrorKind::OutOfMemory, "cuda device: " + std::move(text));
}

// Where cudaMalloc's memory begins, too: vector loads want 16 bytes, cuBLASLt's best kernels more.
constexpr std::size_t kCardAlignment = 256;

// A tensor without elements has an address too: null means that there is no tensor.
std::size_t paddedBytes(std::size_t bytes)
{
    return (std::max<std::size_t>(bytes, 1) + kCardAlignment - 1) / kCardAlignment * kCardAlignment;
}

std::size_t bytesOf(std::span<const BufferWish> wishes)
{
    std::size_t sum = 0;
    for (const BufferWish& wish : wishes)
        sum += wish.bytes;
    return sum;
}

// "600 B of weights", or "27.1 GiB in 190 buffers, the largest 1.0 GiB of weights".
std::string wordsOf(std::span<const BufferWish> wishes)
{
    const BufferWish& largest = *std::max_element(wishes.begin(), wishes.end(),
        [](const BufferWish& a, const BufferWish& b) { return a.bytes < b.bytes; });
    const std::string words = formatBytes(largest.bytes) + " of " + std::string(largest.tag);
    if (wishes.size() == 1)
        return words;
    return formatBytes(bytesOf(wishes)) + " in " + std::to_string(wishes.size()) +
           " buffers, the largest " + words;
}

std::string cardLeft()
{
    std::size_t freeBytes = 0;
    std::size_t totalBytes = 0;
    if (cudaMemGetInfo(&freeBytes, &totalBytes) != cudaSuccess)
        return {};
    return "; " + formatBytes(freeBytes) + " of the card's " + formatBytes(totalBytes) +
           " are free, other programs may hold the rest";
}

} // namespace

Status CudaMemory::checkBudget(std::span<const BufferWish> wishes) const
{
    const std::size_t left = m_budgetBytes - usage().deviceBytes;
    if (bytesOf(wishes) <= left)
        return {};
    return outOfMemory("no room for " + wordsOf(wishes) + "; " + formatBytes(left) + " of " +
                       formatBytes(m_budgetBytes) + " are left");
}

// Zeroed. `bytes` hold all wishes, padding too.
Result<std::byte*> CudaMemory::takeCard(
    std::size_t bytes, std::span<const BufferWish> wishes, cudaStream_t stream)
{
    void* data = nullptr;
    const cudaError_t code = cudaMalloc(&data, bytes);
    if (code == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return outOfMemory("the card has no " + wordsOf(wishes) + cardLeft());
    }
    MR_TRY(m_failure.check(code, "cudaMalloc"));
    Status zeroed = m_failure.check(cudaMemsetAsync(data, 0, bytes, stream), "cudaMemsetAsync");
    if (zeroed.ok())
        zeroed = m_failure.check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (!zeroed.ok()) {
        (void)cudaFree(data);
        return zeroed;
    }
    return static_cast<std::byte*>(data);
}

Result<std::vector<Buffer>> CudaMemory::allocateTogether(
    std::span<const BufferWish> wishes, cudaStream_t stream)
{
    MR_TRY(m_failure.status());
    std::vector<Buffer> buffers;
    if (wishes.empty())
        return buffers;
    MR_TRY(checkBudget(wishes));
    std::size_t whole = 0;
    for (const BufferWish& wish : wishes)
        whole += paddedBytes(wish.bytes);
    MR_ASSIGN(auto block, takeCard(whole, wishes, stream));
    buffers.reserve(wishes.size());
    std::byte* next = block;
    for (const BufferWish& wish : wishes) {
        buffers.push_back(keep({next, {wish.bytes, MemoryKind::Device, block, 0}}));
        next += paddedBytes(wish.bytes);
    }
    return buffers;
}

Result<CudaMemory::Taken> CudaMemory::takePinned(std::size_t bytes, std::string_view tag)
{
    const std::size_t skew = bytes < kSkewFromBytes ? 0 : (m_skew++ % kSkewSteps) * kSkewStepBytes;
    const PinnedMapping mapping = mapPinned(bytes + skew);
    if (mapping.base)
        return Taken{
            mapping.base + skew, {bytes, MemoryKind::PinnedHost, mapping.base, mapping.bytes}};
    std::string text = "the system has no " + formatBytes(bytes) + " of page-locked memory for " +
                       std::string(tag);
    if (mapping.code != cudaSuccess)
        text += std::string(" (cudaHostRegister: ") + cudaGetErrorName(mapping.code) + ")";
    return outOfMemory(text + "; close other programs or give a smaller --host-memory");
}

Result<Buffer> CudaMemory::allocate(
    std::size_t bytes, MemoryKind kind, std::string_view tag, cudaStream_t stream)
{
    if (kind == MemoryKind::Device) {
        const BufferWish wish{bytes, tag};
        MR_ASSIGN(auto buffers, allocateTogether({&wish, 1}, stream));
        return std::move(buffers.front());
    }
    MR_TRY(m_failure.status());
    MR_ASSIGN(auto taken, takePinned(bytes, tag));
    return keep(taken);
}

Buffer CudaMemory::keep(const Taken& taken)
{
    const std::size_t bytes = taken.block.bytes;
    const bool device = taken.block.kind == MemoryKind::Device;
    const std::scoped_lock lock(m_mutex);
    m_blocks.emplace(taken.data, taken.block);
    if (device)
        ++m_shares[taken.block.base];
    ++m_usage.allocations;
    std::size_t& held = device ? m_usage.deviceBytes : m_usage.pinnedBytes;
    std::size_t& peak = device ? m_usage.devicePeakBytes : m_usage.pinnedPeakBytes;
    held += bytes;
    peak = std::max(peak, held);
    return {taken.data, bytes, taken.block.kind, &CudaMemory::release, this};
}

void CudaMemory::release(void* owner, std::byte* data, std::size_t bytes) noexcept
{
    auto& self = *static_cast<CudaMemory*>(owner);
    Block block;
    bool isLast = true;
    {
        const std::scoped_lock lock(self.m_mutex);
        const auto found = self.m_blocks.find(data);
        block = found->second;
        self.m_blocks.erase(found);
        if (block.kind == MemoryKind::Device) {
            self.m_usage.deviceBytes -= bytes;
            const auto share = self.m_shares.find(block.base);
            isLast = --share->second == 0;
            if (isLast)
                self.m_shares.erase(share);
        } else {
            self.m_usage.pinnedBytes -= bytes;
        }
    }
    if (block.kind == MemoryKind::PinnedHost)
        unmapPinned({block.base, block.mappedBytes, cudaSuccess}, self.m_failure);
    else if (isLast)
        self.m_failure.note(cudaFree(block.base), "cudaFree");
}

std::optional<MemoryKind> CudaMemory::find(const std::byte* data, std::size_t bytes) const noexcept
{
    const std::scoped_lock lock(m_mutex);
    auto next = m_blocks.upper_bound(data);
    if (next == m_blocks.begin())
        return std::nullopt;
    const auto& [start, block] = *--next;
    const auto offset = static_cast<std::size_t>(data - start);
    if (offset > block.bytes || bytes > block.bytes - offset)
        return std::nullopt;
    return block.kind;
}

std::optional<std::size_t> CudaMemory::freeBytes() const noexcept
{
    std::size_t ofCard = 0;
    std::size_t total = 0;
    if (cudaMemGetInfo(&ofCard, &total) != cudaSuccess)
        return std::nullopt;
    return std::min(ofCard, m_budgetBytes - usage().deviceBytes);
}

MemoryUsage CudaMemory::usage() const noexcept
{
    const std::scoped_lock lock(m_mutex);
    return m_usage;
}

} // namespace mr::gpu
