#include "core/device/cpu/cpu_memory.h"

#include "core/base/bytes.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace mr {
namespace {

constexpr std::size_t kAlignment = 64;

// The system places large allocations at the same offset in their pages. AdamW walks four
// arrays at once, and arrays that start a power of two apart cost it a factor: so each large one
// starts a step further than the one before. The step is no multiple of 4 KiB.
constexpr std::size_t kSkewStepBytes = 4096 + 5 * kAlignment;
constexpr unsigned kSkewSteps = 13;
constexpr std::size_t kSkewFromBytes = std::size_t{64} << 10;

} // namespace

Result<Buffer> CpuMemory::allocate(std::size_t bytes, MemoryKind kind, std::string_view tag)
{
    const std::scoped_lock lock(m_mutex);
    const std::size_t left = m_budgetBytes - m_usage.deviceBytes;
    if (kind == MemoryKind::Device && bytes > left)
        return Status::error(ErrorKind::OutOfMemory,
            "cpu device: no room for " + formatBytes(bytes) + " of " + std::string(tag) + "; " +
                formatBytes(left) + " of " + formatBytes(m_budgetBytes) + " are left");
    const std::size_t skew = bytes < kSkewFromBytes ? 0 : (m_skew++ % kSkewSteps) * kSkewStepBytes;
    const std::size_t extra = kAlignment + skew;
    // calloc: large blocks come zeroed from the system and are not touched here.
    void* base = bytes > SIZE_MAX - extra ? nullptr : std::calloc(bytes + extra, 1);
    if (!base)
        return Status::error(ErrorKind::OutOfMemory,
            "cpu device: the system has no " + formatBytes(bytes) + " for " + std::string(tag));
    std::size_t room = bytes + extra - skew;
    void* aligned = static_cast<std::byte*>(base) + skew;
    std::align(kAlignment, std::max<std::size_t>(bytes, 1), aligned, room);
    auto* data = static_cast<std::byte*>(aligned);
    m_blocks.emplace(data, Block{bytes, kind, base});

    ++m_usage.allocations;
    std::size_t& held = kind == MemoryKind::Device ? m_usage.deviceBytes : m_usage.pinnedBytes;
    std::size_t& peak =
        kind == MemoryKind::Device ? m_usage.devicePeakBytes : m_usage.pinnedPeakBytes;
    held += bytes;
    peak = std::max(peak, held);
    return Buffer(data, bytes, kind, &CpuMemory::release, this);
}

void CpuMemory::release(void* owner, std::byte* data, std::size_t bytes) noexcept
{
    auto& self = *static_cast<CpuMemory*>(owner);
    const std::scoped_lock lock(self.m_mutex);
    const auto block = self.m_blocks.find(data);
    std::free(block->second.base);
    (block->second.kind == MemoryKind::Device ? self.m_usage.deviceBytes
                                              : self.m_usage.pinnedBytes) -= bytes;
    self.m_blocks.erase(block);
}

std::optional<MemoryKind> CpuMemory::find(const std::byte* data, std::size_t bytes) const noexcept
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

MemoryUsage CpuMemory::usage() const noexcept
{
    const std::scoped_lock lock(m_mutex);
    return m_usage;
}

} // namespace mr
