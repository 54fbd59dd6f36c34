// Names of kernels as people write them: without namespaces, with template arguments.
//
// Threads  Any; no state.

#pragma once

#include <string>
#include <string_view>

namespace mr::gpu {

// "Op<Bf16>" of "mr::gpu::(anonymous namespace)::Op<mr::gpu::Bf16>".
std::string withoutNamespaces(std::string_view text);

// "rmsNormKernel<Bf16, 8>", of the name in machine code or a profiler. A name that is not mangled
// stays.
std::string kernelNameOf(const std::string& mangled);

} // namespace mr::gpu
