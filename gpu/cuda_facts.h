// Card, driver and libraries of this machine, and whether they can be used together.
//
// Threads  Any.
// Errors   As CudaPlugin::inspect() of gpu/plugin.h.

#pragma once

#include "gpu/plugin.h"

namespace mr::gpu {

Result<CudaFacts> inspectCuda();

// "sm_90 cublasLt 13.0.2": bits are promised within one.
std::string instructionSetOf(const CudaFacts& facts);

} // namespace mr::gpu
