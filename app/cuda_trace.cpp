#include "app/cuda_trace.h"

#include "app/cuda_plugin.h"
#include "gpu/cupti_trace.h"
#include "gpu/plugin_abi.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>

namespace mr::app {

Result<std::unique_ptr<ActivityTrace>> makeCudaTrace()
{
    MR_TRY(cudaPlugin().status()); // loads it, or says why not
    std::error_code error;
    const std::filesystem::path file = std::filesystem::absolute(findCudaPlugin(), error);
    void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    const auto entry =
        library ? reinterpret_cast<gpu::TraceEntry>(::dlsym(library, gpu::kTraceEntry)) : nullptr;
    if (!entry || std::string_view(entry()->abi) != gpu::kPluginAbi)
        return Status::error(
            ErrorKind::InvalidArgument, "CUPTI: " + file.string() + " of this build cannot trace");
    return entry()->makeTrace();
}

} // namespace mr::app
