// SimtDevice: the ops of the CUDA device, with kernels that run on the host.
//
// Memory, streams, events and gates are those of a CPU device in inline mode; the ops are
// gpu/cuda_ops.cpp over gpu/ops/*.cu as they are, and HostGemm for the products. It shows what
// kernels compute; it says nothing of their speed.
//
// Threads  As device.h. One such device runs kernels at a time.
// Errors   A misuse in a kernel is DeviceLost, with the sentence of simt::faultText().

#pragma once

#include "core/device/device.h"
#include "gpu/ops/attention_choice.h"

#include <cstddef>
#include <memory>

namespace mr::simt {

// A card of compute capability 8 with one SM, which takes the largest tiles of attention.
inline constexpr gpu::AttentionCard kSimtCard{8, 1, std::size_t{228} << 10};

std::unique_ptr<Device> makeSimtDevice(std::size_t memoryBytes,
    const gpu::AttentionChoice& attention = gpu::AttentionChoice(kSimtCard));

} // namespace mr::simt
