// TraceRange: names the work enqueued while it lives, for NVIDIA's profilers (NVTX).
//
// Costs a few nanoseconds when no profiler listens; nothing where the toolkit has no NVTX and in
// the tests' host device.
//
// Threads  Ranges of one thread nest.

#pragma once

#if !defined(MR_SIMT) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define MR_HAVE_NVTX
#endif

namespace mr::gpu {

class [[nodiscard]] TraceRange
{
public:
#ifdef MR_HAVE_NVTX
    explicit TraceRange(const char* name) noexcept
    {
        nvtxRangePushA(name);
    }
    ~TraceRange()
    {
        nvtxRangePop();
    }
#else
    explicit TraceRange(const char* /*name*/) noexcept {}
    ~TraceRange() = default;
#endif
    TraceRange(const TraceRange&) = delete;
    TraceRange& operator=(const TraceRange&) = delete;
};

} // namespace mr::gpu
