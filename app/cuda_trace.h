// The profiling side of the CUDA plugin, for `millrace bench step --cupti`.
//
// Threads  As core/device/activity_trace.h.
// Errors   InvalidArgument in one sentence: those of cuda_plugin.h and gpu/cupti_trace.h.

#pragma once

#include "core/device/activity_trace.h"

#include <millrace/status.h>

#include <memory>

namespace mr::app {

Result<std::unique_ptr<ActivityTrace>> makeCudaTrace();

} // namespace mr::app
