// Small benchmarks of a device's ops, each beside a limit measured in the same run.
//
// Ratios travel between machines, absolute figures do not; so every row carries the limit it is
// judged by. For the host's processor that is a loop of independent fused multiply-adds, and
// reading and writing plain memory. Any other device is its own limit: its best large square
// product, its largest copy inside its memory, its largest copy over the link.
//
// Ours is the median of at least 20 batches (7 where calls take long), timed by the device's
// events; a limit is the best of its rounds, so noise can only make a ratio worse. Inputs are
// random, and larger than the caches or taken in turns. Sizes follow from the device's memory.
//
// Threads  The caller's, and as many of the limit loops as DeviceInfo::threads. The device must be
//          idle.
// Errors   Those of the device (OutOfMemory, DeviceLost).
// Units    As each row says; ours and limit are both "more is better".

#pragma once

#include "core/device/device.h"

#include <string>
#include <vector>

namespace mr {

struct BenchRow {
    std::string name; // "linear bf16 1024 x 1024 x 1024"
    double ours = 0.0;
    double limit = 0.0;
    std::string unit;   // "GFLOP/s", "GB/s"
    double ratio = 0.0; // ours / limit
};

// linear, gradients of input and weight. On the host's processor small shapes in F32 and BF16, else
// the products of models of 1.5, 3 and 7 billion parameters at 2,048 tokens in BF16. Shapes are
// tokens x in x out.
Result<std::vector<BenchRow>> benchMatmul(Device& device);

// Host to device, device to host, both at once on two streams, inside the device. Link rows count
// each byte once; on the host's processor, where a link is a copy in memory, read and written.
Result<std::vector<BenchRow>> benchCopy(Device& device);

// 26 bytes per parameter with BF16 gradients: read 14, write 12.
Result<std::vector<BenchRow>> benchAdamw(Device& device);

// Forward (4 T^2 / 2 headDim heads) and backward (10 / 4 of it) for the keys that causal rows see.
Result<std::vector<BenchRow>> benchAttention(Device& device);

// Everything else a step runs, by bytes that must be read once and written once.
Result<std::vector<BenchRow>> benchElements(Device& device);

} // namespace mr
