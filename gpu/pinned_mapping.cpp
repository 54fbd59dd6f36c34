#include "gpu/pinned_mapping.h"

#include "core/base/parallel.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <thread>

namespace mr::gpu {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// One thread zeroes a few GiB a second; beyond eight the memory itself is the limit. A slice below
// 256 MiB is registered in less time than a thread needs to be worth it.
constexpr std::size_t kMaxThreads = 8;
constexpr std::size_t kMinSliceBytes = std::size_t{256} << 20;

std::size_t roundUp(std::size_t bytes, std::size_t to)
{
    return (bytes + to - 1) / to * to;
}

std::size_t sliceCount(std::size_t bytes)
{
    const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
    return std::clamp<std::size_t>(bytes / kMinSliceBytes, 1, std::min(threads, kMaxThreads));
}

std::size_t bytesOfSlice(const PinnedMapping& mapping, std::size_t begin)
{
    return std::min(mapping.sliceBytes, mapping.bytes - begin);
}

// Large mappings start at a huge page, so that slices do not cut one in two. Null if there is no
// room. `bytes` are whole pages.
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

// Mapped: kernels may read pinned tensors in place. Portable costs nothing and holds on any card.
cudaError_t registerSlice(const PinnedMapping& mapping, std::size_t begin)
{
    const cudaError_t code = cudaHostRegister(mapping.base + begin, bytesOfSlice(mapping, begin),
        cudaHostRegisterMapped | cudaHostRegisterPortable);
    if (code != cudaSuccess)
        (void)cudaGetLastError(); // it is the caller's to report, not the next launch's
    return code;
}

// Registers slices and, should one fail, takes back those that succeeded.
void registerAll(PinnedMapping& mapping)
{
    const std::size_t count = (mapping.bytes + mapping.sliceBytes - 1) / mapping.sliceBytes;
    std::array<cudaError_t, kMaxThreads> codes{};
    const auto each = [&](std::int64_t i) {
        const auto index = static_cast<std::size_t>(i);
        codes[index] = registerSlice(mapping, index * mapping.sliceBytes);
    };
    if (count == 1)
        each(0);
    else
        ThreadPool(static_cast<int>(count), "pin").parallelFor(static_cast<int>(count), each);
    for (std::size_t i = 0; i < count; ++i)
        if (codes[i] != cudaSuccess && mapping.code == cudaSuccess)
            mapping.code = codes[i];
    if (mapping.code == cudaSuccess)
        return;
    for (std::size_t i = 0; i < count; ++i)
        if (codes[i] == cudaSuccess)
            (void)cudaHostUnregister(mapping.base + i * mapping.sliceBytes);
    (void)::munmap(mapping.base, mapping.bytes);
    mapping.base = nullptr;
}

} // namespace

PinnedMapping mapPinned(std::size_t bytes)
{
    PinnedMapping mapping;
    mapping.bytes = roundUp(std::max<std::size_t>(bytes, 1), kPageBytes);
    mapping.base = mapPages(mapping.bytes);
    if (!mapping.base)
        return mapping;
    (void)::madvise(mapping.base, mapping.bytes, MADV_HUGEPAGE); // a hint: fewer page faults
    const std::size_t slices = sliceCount(mapping.bytes);
    mapping.sliceBytes = slices == 1
                             ? mapping.bytes
                             : roundUp((mapping.bytes + slices - 1) / slices, kHugePageBytes);
    registerAll(mapping);
    return mapping;
}

void unmapPinned(const PinnedMapping& mapping, CudaFailure& failure) noexcept
{
    for (std::size_t begin = 0; begin < mapping.bytes; begin += mapping.sliceBytes)
        failure.note(cudaHostUnregister(mapping.base + begin), "cudaHostUnregister");
    (void)::munmap(mapping.base, mapping.bytes);
}

} // namespace mr::gpu
