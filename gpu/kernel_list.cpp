#include "gpu/kernel_list.h"

#include "gpu/cuda_status.h"

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

bool isWord(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
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
    std::string name;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.substr(i, 2) != "::") {
            name += text[i];
            continue;
        }
        ++i;
        const bool isUnnamed = name.ends_with('}') || name.ends_with(')');
        if (isUnnamed)
            name.erase(name.find_last_of("{("));
        while (!isUnnamed && !name.empty() && isWord(name.back()))
            name.pop_back();
    }
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
