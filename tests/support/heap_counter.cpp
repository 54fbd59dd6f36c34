#include "support/heap_counter.h"

#include <link.h>
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace mr::test {
namespace {

thread_local HeapCounts threadCounts;
std::atomic<std::uint64_t> allOurs = 0;
std::atomic<std::uint64_t> allOneDnn = 0;
std::atomic<std::size_t> bytesNow = 0;
std::atomic<std::size_t> bytesPeak = 0;

struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

int findOneDnn(dl_phdr_info* info, std::size_t, void* out)
{
    if (!info->dlpi_name || !std::strstr(info->dlpi_name, "libdnnl"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0)
            continue;
        const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
        *static_cast<Range*>(out) = {begin, begin + segment.p_memsz};
    }
    return 1;
}

// Looked up by the first allocation, which runs before main: the library is linked, not loaded
// later, and looking it up allocates nothing.
const Range& oneDnnCode() noexcept
{
    static const Range range = [] {
        Range found;
        dl_iterate_phdr(&findOneDnn, &found);
        return found;
    }();
    return range;
}

// Thread sanitizer keeps its own forms of new and delete, which use neither.
[[maybe_unused]] void* allocate(std::size_t bytes, std::size_t alignment, void* caller)
{
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    const Range& oneDnn = oneDnnCode();
    if (address >= oneDnn.begin && address < oneDnn.end) {
        ++threadCounts.oneDnn;
        allOneDnn.fetch_add(1, std::memory_order_relaxed);
    } else {
        ++threadCounts.ours;
        allOurs.fetch_add(1, std::memory_order_relaxed);
    }
    void* data = nullptr;
    if (alignment <= alignof(std::max_align_t))
        data = std::malloc(bytes == 0 ? 1 : bytes);
    else if (posix_memalign(&data, alignment, bytes == 0 ? 1 : bytes) != 0)
        data = nullptr;
    if (!data)
        throw std::bad_alloc();
    const std::size_t more = malloc_usable_size(data);
    const std::size_t now = bytesNow.fetch_add(more, std::memory_order_relaxed) + more;
    std::size_t peak = bytesPeak.load(std::memory_order_relaxed);
    while (peak < now && !bytesPeak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
    return data;
}

[[maybe_unused]] void release(void* data) noexcept
{
    bytesNow.fetch_sub(malloc_usable_size(data), std::memory_order_relaxed); // 0 for null
    std::free(data);
}

} // namespace

HeapCounts heapCountsOfThisThread() noexcept
{
    return threadCounts;
}

HeapCounts heapCountsOfAllThreads() noexcept
{
    return {allOurs.load(std::memory_order_relaxed), allOneDnn.load(std::memory_order_relaxed)};
}

std::size_t heapBytes() noexcept
{
    return bytesNow.load(std::memory_order_relaxed);
}

std::size_t heapPeakBytes() noexcept
{
    return bytesPeak.load(std::memory_order_relaxed);
}

void resetHeapPeak() noexcept
{
    bytesPeak.store(heapBytes(), std::memory_order_relaxed);
}

} // namespace mr::test

#ifndef __SANITIZE_THREAD__ // its own forms cannot be replaced
// All forms, also those that the standard library makes of others: a sanitizer brings forms of its
// own, and ours must not free their memory.
void* operator new(std::size_t bytes)
{
    return mr::test::allocate(bytes, 1, __builtin_return_address(0));
}

void* operator new(std::size_t bytes, std::align_val_t alignment)
{
    return mr::test::allocate(
        bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}

void* operator new[](std::size_t bytes)
{
    return mr::test::allocate(bytes, 1, __builtin_return_address(0));
}

void* operator new[](std::size_t bytes, std::align_val_t alignment)
{
    return mr::test::allocate(
        bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    try {
        return mr::test::allocate(bytes, 1, __builtin_return_address(0));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept
{
    try {
        return mr::test::allocate(bytes, 1, __builtin_return_address(0));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void operator delete(void* data) noexcept
{
    mr::test::release(data);
}

void operator delete(void* data, std::size_t) noexcept
{
    mr::test::release(data);
}

void operator delete(void* data, std::align_val_t) noexcept
{
    mr::test::release(data);
}

void operator delete(void* data, std::size_t, std::align_val_t) noexcept
{
    mr::test::release(data);
}

void operator delete(void* data, const std::nothrow_t&) noexcept
{
    mr::test::release(data);
}

void operator delete[](void* data, const std::nothrow_t&) noexcept
{
    mr::test::release(data);
}

void operator delete[](void* data) noexcept
{
    mr::test::release(data);
}

void operator delete[](void* data, std::size_t) noexcept
{
    mr::test::release(data);
}

void operator delete[](void* data, std::align_val_t) noexcept
{
    mr::test::release(data);
}

void operator delete[](void* data, std::size_t, std::align_val_t) noexcept
{
    mr::test::release(data);
}
#endif
