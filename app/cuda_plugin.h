// Finds and loads the CUDA plugin, so that a program starts without CUDA and says why it has none.
//
// The environment variable MILLRACE_CUDA_PLUGIN may name the file (app/plugin_file.h).
//
// Threads    Any; blocking. The first call loads, which takes a tenth of a second.
// Ownership  A plugin stays loaded until the process ends: devices made by it are code in it.
// Errors     InvalidArgument in one sentence: no plugin here, cuBLAS missing (with the system
//            loader's words), a file that is no plugin or one of another build; and those of
//            gpu/plugin.h.

#pragma once

#include "gpu/plugin.h"

#include <filesystem>
#include <memory>

namespace mr::app {

// False where the driver's library cannot be loaded and the environment names no plugin. With
// device auto, the program then need not load the plugin and the half gigabyte of cuBLAS behind it.
bool mayHaveCudaCard();

// Path of the plugin, or the one the environment names, even if it is missing; empty: none found.
std::filesystem::path findCudaPlugin();

// Loads that file, also if another one was loaded before.
Result<const gpu::CudaPlugin*> loadCudaPlugin(const std::filesystem::path& file);

// The one of this process. The first call loads it; later ones return the first call's result.
Result<const gpu::CudaPlugin*> cudaPlugin();

// The card; asked anew each time, as its free memory changes.
Result<gpu::CudaFacts> inspectCuda();

// On that card, with a budget of `memoryBytes`.
Result<std::unique_ptr<Device>> makeCudaDevice(std::uint64_t memoryBytes);

// As CudaPlugin::baselineBytes(), of a device that makeCudaDevice() made.
std::uint64_t cudaBaselineBytes(const Device& device);

} // namespace mr::app
