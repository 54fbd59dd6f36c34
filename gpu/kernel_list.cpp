#include "gpu/kernel_list.h"

#include "gpu/cuda_status.h"
#include "gpu/kernel_name.h"

#include <cuda_runtime_api.h>

#include <string_view>
#include <vector>

namespace mr::gpu {

namespace {

// In a function, because initialisers of other files use it.
std::vector<KernelEntry>& list()
{
    static std::vector<KernelEntry> kernels;
    return kernels;
}

} // namespace

bool addToKernelList(const KernelEntry& entry)
{
    list().push_back(entry);
    return true;
}

std::span<const KernelEntry> listedKernels() noexcept
{
    return list();
}

// From "... [with auto Kernel = {anonymous}::rmsNormKernel<mr::gpu::Bf16, 8>]": what follows the
// sign, without the namespaces before each name.
std::string kernelName(const KernelEntry& entry)
{
    std::string_view text = entry.text;
    text.remove_prefix(text.find(" = ") + 3);
    text.remove_suffix(text.size() - text.rfind(']'));
    std::string name = withoutNamespaces(text);
    return name.starts_with('&') ? name.substr(1) : name;
}

Status loadKernels()
{
    for (const KernelEntry& entry : list()) {
        cudaFuncAttributes attributes{};
        MR_TRY(toStatus(cudaFuncGetAttributes(&attributes, entry.kernel),
            "cudaFuncGetAttributes of " + kernelName(entry)));
    }
    return {};
}

} // namespace mr::gpu
