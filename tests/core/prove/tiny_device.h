// runOn(): a tiny run on a small CPU device of its own.

#pragma once

#include "core/device/cpu/cpu_device.h"
#include "core/prove/exact_check.h"

#include <cstddef>

namespace mr {

inline Result<TinyResult> runOn(CpuDeviceOptions::Mode mode, const TinyRun& run)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.threads = 2;
    options.mode = mode;
    auto device = makeCpuDevice(options);
    MR_TRY(device.status());
    return runTiny(*device.value(), run);
}

} // namespace mr
