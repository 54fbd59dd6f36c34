// Small benchmarks of a device's ops, each beside a limit measured in the same run.
//
// Ratios travel between machines, absolute figures do not; so every row carries the limit it is
// judged by: a loop of independent fused multiply-adds for products, reading and writing plain
// memory for copies and AdamW. The loops are the host's. A device that is not the host's
// processor gives limit 0 (and ratio 0) where the host's loops would be meaningless.
//
// Threads  The caller's, and as many of the limit loops as DeviceInfo::threads. The device must be
//          idle.
// Errors   Those of the device (OutOfMemory, DeviceLost).
// Units    As each row says; ours and limit are both "more is better", best of several rounds.

#pragma once

#include "core/device/device.h"

#include <string>
#include <vector>

namespace mr {

struct BenchRow {
    std::string name; // "matmul bf16 1024 x 1024 x 1024"
    double ours = 0.0;
    double limit = 0.0; // 0: none measured
    std::string unit;   // "GFLOP/s", "GB/s"
    double ratio = 0.0; // ours / limit
};

// linear, gradients of input and weight, square and model-shaped, F32 and BF16.
Result<std::vector<BenchRow>> benchMatmul(Device& device);

// Host to device, device to host; bytes read plus bytes written.
Result<std::vector<BenchRow>> benchCopy(Device& device);

// 26 bytes per parameter with BF16 gradients: read 14, write 12.
Result<std::vector<BenchRow>> benchAdamw(Device& device);

// Forward (4 T^2 / 2 headDim heads) and backward (10 / 4 of it) by what a causal row needs.
Result<std::vector<BenchRow>> benchAttention(Device& device);

} // namespace mr
