// A device whose kernels are the compiled PTX, run by the machine. Memory and streams are the CPU
// device's; products are plain C++.
//
// Threads  One.

#pragma once

#include "core/device/device.h"
#include "gpu/ops/attention_choice.h"

#include <cstddef>
#include <memory>

namespace mr::ptx {

std::unique_ptr<Device> makePtxDevice(
    std::size_t memoryBytes, const gpu::AttentionChoice& attention);

} // namespace mr::ptx
