// Interface of the CUDA plugin, libmillrace-cuda.so, to the program that loads it.
//
// The CUDA device is a plugin, because a program that links cuBLAS does not start where cuBLAS is
// missing; a plugin that cannot be loaded fails with a sentence. The plugin exports one function,
// millraceCudaPlugin(), and C++ objects cross the border: so both sides must be built by one
// compiler from one set of headers, which `abi` proves. Compare it before anything else is used.
//
// Threads    Any, one at a time for makeDevice(). A device it makes: as core/device/device.h.
// Ownership  The table lives as long as the library is loaded, and that must be as long as the
//            process: code of devices, events and errors lies in it.
// Errors     InvalidArgument in one sentence that names the cause and the remedy: no driver,
//            no GPU, driver too old, card too old, kernels not built for this card. DeviceLost
//            where driver and card are there and do not answer.
// Units      Bytes; CUDA versions as 1000 * major + 10 * minor.

#pragma once

#include "core/device/device.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace mr::gpu {

// The card that CUDA lists first, which CUDA_VISIBLE_DEVICES chooses.
struct CudaFacts {
    std::string name;
    int computeMajor = 0; // compute capability 9.0 is 9 and 0
    int computeMinor = 0;
    std::uint64_t totalBytes = 0;
    // Free for the arrays of a device that is made next: CUDA has its own memory and our kernels by
    // then, and what the device takes for itself, the workspace of matrix products, is taken off.
    // Code of cuBLASLt is not: it is loaded when first used.
    std::uint64_t freeBytes = 0;
    int driverVersion = 0;           // the newest CUDA that the driver knows
    int runtimeVersion = 0;          // the CUDA this plugin was built with
    std::size_t cublasLtVersion = 0; // as the library numbers itself
    bool bf16 = false;               // compute capability 8.0 and later
};

// Tensor cores that multiply FP8: compute capability 8.9 and later.
inline bool hasFp8(const CudaFacts& facts) noexcept
{
    return facts.computeMajor > 8 || (facts.computeMajor == 8 && facts.computeMinor >= 9);
}

struct CudaDeviceOptions {
    std::uint64_t memoryBytes = 0; // budget of device memory
};

struct CudaPlugin {
    const char* abi; // kPluginAbi of plugin_abi.h as the plugin saw it; first for good

    // Starts CUDA in this process, which holds some 300 MiB of the card until the process ends.
    Result<CudaFacts> (*inspect)();

    Result<std::unique_ptr<Device>> (*makeDevice)(const CudaDeviceOptions& options);

    // Memory that the card held just before the first allocation of a device of makeDevice():
    // context, libraries, workspace, and other programs. No budget counts it.
    std::uint64_t (*baselineBytes)(const Device& device);
};

// The name and type of the exported function.
inline constexpr const char* kPluginEntry = "millraceCudaPlugin";
using PluginEntry = const CudaPlugin* (*)();

} // namespace mr::gpu
