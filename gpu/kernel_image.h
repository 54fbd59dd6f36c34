// Whether the kernels of this build run on this card at all.
//
// Threads  Any.
// Errors   InvalidArgument names the architectures that were compiled; those of toStatus()
//          otherwise.

#pragma once

#include <millrace/status.h>

#include <string_view>

namespace mr::gpu {

// Loads an empty kernel of the same architectures as all others. `card` is for the sentence:
// "NVIDIA X (sm_75)".
Status checkKernelImage(std::string_view card);

} // namespace mr::gpu
