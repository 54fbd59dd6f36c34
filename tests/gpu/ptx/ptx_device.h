// A device whose kernels are the compiled PTX, run by the machine. Memory and streams are the CPU
// device's; products are plain C++.
//
// Threads  One.

#pragma once

#include "gpu/ops/attention_choice.h"
#include "gpu/simt/kernel_device.h"

#include <cstddef>
#include <memory>

namespace mr::ptx {

std::unique_ptr<simt::KernelDevice> makePtxDevice(
    std::size_t memoryBytes, const gpu::AttentionChoice& attention);

} // namespace mr::ptx
