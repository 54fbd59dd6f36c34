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

Result<CudaMemory::Taken> CudaMemory::takeDevice(
    std::size_t bytes, std::string_view tag, cudaStream_t stream)
{
    const std::size_t left = m_budgetBytes - usage().deviceBytes;
    if (bytes > left)
        return outOfMemory("no room for " + formatBytes(bytes) + " of " + std::string(tag) + "; " +
                           formatBytes(left) + " of " + formatBytes(m_budgetBytes) + " are left");
    // A tensor without elements has an address too: null means that there is no tensor.
    const std::size_t asked = std::max<std::size_t>(bytes, 1);
    void* data = nullptr;
    const cudaError_t code = cudaMalloc(&data, asked);
    if (code == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return outOfMemory(
            "the card has no " + formatBytes(bytes) + " for " + std::string(tag) + cardLeft());
    }
    MR_TRY(m_failure.check(code, "cudaMalloc"));
    Status zeroed = m_failure.check(cudaMemsetAsync(data, 0, asked, stream), "cudaMemsetAsync");
    if (zeroed.ok())
        zeroed = m_failure.check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (!zeroed.ok()) {
        (void)cudaFree(data);
        return zeroed;
    }
    return Taken{static_cast<std::byte*>(data), {bytes, MemoryKind::Device, nullptr, 0}};
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
    MR_TRY(m_failure.status());
    MR_ASSIGN(auto taken,
        kind == MemoryKind::Device ? takeDevice(bytes, tag, stream) : takePinned(bytes, tag));
    return keep(taken);
}

Buffer CudaMemory::keep(const Taken& taken)
{
    const std::size_t bytes = taken.block.bytes;
    const bool device = taken.block.kind == MemoryKind::Device;
    const std::scoped_lock lock(m_mutex);
    m_blocks.emplace(taken.data, taken.block);
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
    {
        const std::scoped_lock lock(self.m_mutex);
        const auto found = self.m_blocks.find(data);
        block = found->second;
        self.m_blocks.erase(found);
        (block.kind == MemoryKind::Device ? self.m_usage.deviceBytes : self.m_usage.pinnedBytes) -=
            bytes;
    }
    if (block.kind == MemoryKind::Device)
        self.m_failure.note(cudaFree(data), "cudaFree");
    else
        unmapPinned({block.base, block.mappedBytes, cudaSuccess}, self.m_failure);
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
