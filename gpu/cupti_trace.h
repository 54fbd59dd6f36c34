// An ActivityTrace over CUPTI, NVIDIA's profiling library: the card's actual kernels and copies.
//
// libcupti is found by name at run time, as it comes with the toolkit and not with the driver.
// Beside millraceCudaPlugin() the plugin exports a second function, millraceCudaTrace(), for
// programs that want to trace; all others never load CUPTI. As with the plugin's own table, compare
// `abi` before anything else is used.
//
// CUPTI's callbacks carry no pointer of ours, so their records are global, and a process has one
// trace at a time.
//
// Threads    As core/device/activity_trace.h.
// Errors     makeTrace(): InvalidArgument in one sentence if libcupti is not there, or this plugin
//            was built without its headers.

#pragma once

#include "core/device/activity_trace.h"

#include <millrace/status.h>

#include <memory>

namespace mr::gpu {

struct CudaTracePlugin {
    const char* abi; // kPluginAbi of plugin_abi.h as the plugin saw it; first for good
    Result<std::unique_ptr<ActivityTrace>> (*makeTrace)();
};

inline constexpr const char* kTraceEntry = "millraceCudaTrace";
using TraceEntry = const CudaTracePlugin* (*)();

} // namespace mr::gpu
