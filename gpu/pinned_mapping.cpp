#include "gpu/pinned_mapping.h"

#include "core/base/parallel.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <thread>

namespace mr::gpu {
namespace {

constexpr std::size_t kSystemPageBytes = 4096;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

constexpr std::size_t kMaxThreads = 8;
constexpr std::size_t kBytesOfThread = std::size_t{64} << 20; // fewer are not worth a thread

std::size_t roundUp(std::size_t bytes, std::size_t to)
{
    return (bytes + to - 1) / to * to;
}

// Large mappings start at a huge page, so that threads do not share one. Null if there is no room.
// `bytes` are whole pages.
std::byte* mapPages(std::size_t bytes)
{
    const std::size_t extra = bytes < kHugePageBytes ? 0 : kHugePageBytes;
    void* found =
        ::mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        return nullptr;
    auto* base = static_cast<std::byte*>(found);
    if (extra == 0)
        return base;
    const std::size_t before = (~reinterpret_cast<std::uintptr_t>(base) + 1) % kHugePageBytes;
    if (before > 0)
        (void)::munmap(base, before);
    if (before < extra)
        (void)::munmap(base + before + bytes, extra - before);
    return base + before;
}

// Before Linux 5.14 there is no MADV_POPULATE_WRITE: a byte of every page is written.
void populate(std::byte* from, std::size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    if (::madvise(from, bytes, MADV_POPULATE_WRITE) == 0 || errno != EINVAL)
        return; // without memory the registration fails, and says so
#endif
    for (std::size_t at = 0; at < bytes; at += kSystemPageBytes)
        *static_cast<volatile std::byte*>(from + at) = std::byte{0};
}

// The system makes the pages, and zeroes them, in several threads. Registration would make them as
// well, but in one thread and under the driver's lock.
void populateAll(std::byte* base, std::size_t bytes)
{
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t threads =
        std::clamp<std::size_t>(bytes / kBytesOfThread, 1, std::min(cores, kMaxThreads));
    if (threads == 1)
        return populate(base, bytes);
    const std::size_t each = roundUp((bytes + threads - 1) / threads, kHugePageBytes);
    const auto part = [&](std::int64_t i) {
        const std::size_t begin = static_cast<std::size_t>(i) * each;
        if (begin < bytes)
            populate(base + begin, std::min(each, bytes - begin));
    };
    ThreadPool(static_cast<int>(threads), "pin").parallelFor(static_cast<int>(threads), part);
}

} // namespace

PinnedMapping mapPinned(std::size_t bytes)
{
    PinnedMapping mapping;
    mapping.bytes = roundUp(std::max<std::size_t>(bytes, 1), kSystemPageBytes);
    mapping.base = mapPages(mapping.bytes);
    if (!mapping.base)
        return mapping;
    (void)::madvise(mapping.base, mapping.bytes, MADV_HUGEPAGE); // a hint: fewer page faults
    populateAll(mapping.base, mapping.bytes);
    // Mapped: kernels may read pinned tensors in place. Portable: on any card.
    mapping.code = cudaHostRegister(
        mapping.base, mapping.bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);
    if (mapping.code == cudaSuccess)
        return mapping;
    (void)cudaGetLastError(); // it is the caller's to report, not the next launch's
    (void)::munmap(mapping.base, mapping.bytes);
    mapping.base = nullptr;
    return mapping;
}

void unmapPinned(const PinnedMapping& mapping, CudaFailure& failure) noexcept
{
    failure.note(cudaHostUnregister(mapping.base), "cudaHostUnregister");
    (void)::munmap(mapping.base, mapping.bytes);
}

} // namespace mr::gpu
