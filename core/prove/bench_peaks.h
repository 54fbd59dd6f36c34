// Measured peaks of a device: the limits that bench.h compares with.
//
// The host's processor has loops of its own (bench_limits.h). Any other device is its own limit:
// its best large square product and a large copy inside its own memory.
//
// Threads  The caller's. The device must be idle.
// Errors   Those of the device.
// Units    Per second.

#pragma once

#include "core/device/device.h"

namespace mr {

// Operations of products of `type`, 2 per multiply-add.
Result<double> matrixPeak(Device& device, DType type);

// Bytes read plus bytes written of the device's memory.
Result<double> memoryPeak(Device& device);

} // namespace mr
