#include "gpu/cuda_status.h"
#include "gpu/kernel_image.h"

#include <cuda_runtime.h>

#include <string>

namespace mr::gpu {

namespace {

__global__ void emptyKernel() {}

} // namespace

Status checkKernelImage(std::string_view card)
{
    cudaFuncAttributes attributes{};
    const cudaError_t code = cudaFuncGetAttributes(&attributes, emptyKernel);
    if (code != cudaErrorNoKernelImageForDevice && code != cudaErrorInvalidDeviceFunction &&
        code != cudaErrorUnsupportedPtxVersion)
        return toStatus(code, "cudaFuncGetAttributes");
    (void)cudaGetLastError();
    return Status::error(ErrorKind::InvalidArgument,
        "the CUDA kernels of this build do not run on " + std::string(card) +
            ": they were compiled for " MR_CUDA_ARCHITECTURES
            "; build with -DCMAKE_CUDA_ARCHITECTURES for this card, or choose device cpu");
}

} // namespace mr::gpu
