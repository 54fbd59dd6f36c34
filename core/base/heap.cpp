#include "core/base/heap.h"

#include <malloc.h>

namespace mr {

void returnFreedMemory() noexcept
{
    // A piece of a checkpoint is larger, a row of text smaller.
    constexpr int kLargeBytes = 512 << 10;
    mallopt(M_MMAP_THRESHOLD, kLargeBytes);
    mallopt(M_TRIM_THRESHOLD, 2 * kLargeBytes);
    mallopt(M_ARENA_MAX, 2);
}

} // namespace mr
