// Tiny runs, each on a small CPU device of its own, so that its peaks are those of this run.

#pragma once

#include "core/device/cpu/cpu_device.h"
#include "core/prove/exact_check.h"

#include <QtGlobal>

#include <cstddef>
#include <utility>

namespace mr {

inline Result<TinyResult> runOn(CpuDeviceOptions::Mode mode, const TinyRun& run, int threads = 2)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.threads = threads;
    options.mode = mode;
    auto device = makeCpuDevice(options);
    MR_TRY(device.status());
    return runTiny(*device.value(), run);
}

// Ends the program if the run fails.
inline TinyResult resultOn(CpuDeviceOptions::Mode mode, const TinyRun& run, int threads = 2)
{
    auto result = runOn(mode, run, threads);
    if (!result.ok())
        qFatal("%s: %s", run.policy.c_str(), result.status().message().c_str());
    return std::move(result).value();
}

} // namespace mr
