// CudaDevice: the first card that CUDA lists, behind core/device/device.h.
//
// Threads    As in core/device/device.h. makeCudaDevice() may run on another thread than the
//            engine's.
// Ownership  The device owns library handles, workspace and gate words; streams, events, gates and
//            buffers belong to the caller and go first.
// Errors     makeCudaDevice(): those of inspectCuda(); OutOfMemory if the budget is more than the
//            card has. A failure of the card makes the device lost: every later call says
//            DeviceLost with the first failure.

#pragma once

#include "gpu/plugin.h"

#include <memory>

namespace mr::gpu {

Result<std::unique_ptr<Device>> makeCudaDevice(const CudaDeviceOptions& options);

// As CudaPlugin::baselineBytes().
std::uint64_t baselineBytes(const Device& device);

} // namespace mr::gpu
