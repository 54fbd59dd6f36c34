#include "gpu/kernel_list.h"

#include "gpu/cuda_status.h"

#include <cuda_runtime_api.h>

#include <vector>

namespace mr::gpu {

namespace {

// In a function, because initialisers of other files use it.
std::vector<const void*>& list()
{
    static std::vector<const void*> kernels;
    return kernels;
}

} // namespace

bool addToKernelList(const void* kernel)
{
    list().push_back(kernel);
    return true;
}

std::size_t listedKernels() noexcept
{
    return list().size();
}

Status loadKernels()
{
    for (const void* kernel : list()) {
        cudaFuncAttributes attributes{};
        MR_TRY(toStatus(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes"));
    }
    return {};
}

} // namespace mr::gpu
