// ActivityTrace: the device's own record of its work, counted by a second party.
//
// Our own figures come from events that we place and from bytes that we ask for; the profiling
// library of a device sees every kernel and every copy. A benchmark that traces a few steps can
// compare the two. The CUDA plugin has one over CUPTI; the CPU device has none.
//
// Threads  The caller's; the library delivers on threads of its own. One trace at a time.
// Errors   begin(): InvalidArgument in one sentence if the library is not there or refuses.
//          end(): Internal if records could not be read.
// Units    Nanoseconds of the device's clock, bytes.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mr {

// All launches of a kernel.
struct KernelTime {
    std::string name; // "rmsNormKernel<Bf16, 8>"
    std::int64_t launches = 0;
    std::int64_t ns = 0;
    std::int64_t leastNs = 0; // of a launch
    std::int64_t mostNs = 0;
};

struct ActivityTotals {
    std::int64_t busyNs = 0; // at least one kernel, fill or copy inside the device was running
    std::int64_t kernels = 0;
    std::int64_t hostToDeviceBytes = 0;
    std::int64_t deviceToHostBytes = 0;
    std::int64_t dropped = 0;            // records the library lost; then all else is too small
    std::vector<KernelTime> kernelTimes; // each kernel once
};

class ActivityTrace
{
public:
    virtual ~ActivityTrace() = default;

    // The device is idle when either is called; end() blocks until every record has arrived.
    virtual Status begin() = 0;
    virtual Result<ActivityTotals> end() = 0;
};

} // namespace mr
