#include "app/cuda_plugin.h"

#include "app/plugin_file.h"
#include "gpu/plugin_abi.h"

#include <dlfcn.h>

#include <string>
#include <string_view>
#include <utility>

namespace mr::app {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFileName = "libmillrace-cuda.so";
constexpr const char* kEnvironment = "MILLRACE_CUDA_PLUGIN";
constexpr const char* kCublasLt = "libcublasLt.so." MR_CUDA_MAJOR;

Status unusable(std::string text)
{
    return Status::error(ErrorKind::InvalidArgument, "device cuda: " + std::move(text));
}

// The loader's words are for the user; whether it was cuBLAS is found out by asking for it alone.
Status explainLoad(const fs::path& file, const std::string& said)
{
    const std::string start = "the CUDA plugin could not be loaded (" + said + ")";
    if (void* cublas = ::dlopen(kCublasLt, RTLD_LAZY | RTLD_LOCAL)) {
        (void)::dlclose(cublas);
        return unusable(start + "; build or install " + file.filename().string() +
                        " again, or choose device cpu");
    }
    return unusable(
        start + "; it needs cuBLAS of CUDA " MR_CUDA_MAJOR " (" + kCublasLt +
        "), which this machine does not have: install NVIDIA's package libcublas-" MR_CUDA_MAJOR
        "-0 or the CUDA toolkit " MR_CUDA_MAJOR ", or choose device cpu");
}

} // namespace

bool mayHaveCudaCard()
{
    // Kept open: the runtime opens it again.
    static const bool driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
    return driver || !pluginOfEnvironment(kEnvironment).empty();
}

fs::path findCudaPlugin()
{
    return findPlugin(kEnvironment, kFileName);
}

Result<const gpu::CudaPlugin*> loadCudaPlugin(const fs::path& file)
{
    std::error_code error;
    if (file.empty())
        return unusable(std::string("this build has no CUDA device: it was built without the CUDA "
                                    "toolkit, or ") +
                        kFileName + " is not beside the program; choose device cpu");
    if (!fs::exists(file, error))
        return unusable(file.string() + " does not exist, but " + kEnvironment +
                        " names it; correct the variable or unset it");
    if (!isSharedLibrary(file))
        return unusable(file.string() + " is not a shared library, so not the CUDA plugin; build " +
                        "or install it again, or choose device cpu");
    void* library = loadLibrary(file);
    if (!library)
        return explainLoad(file, loaderText());
    const auto entry = reinterpret_cast<gpu::PluginEntry>(::dlsym(library, gpu::kPluginEntry));
    if (!entry)
        return unusable(file.string() + " is not the CUDA plugin: it has no function " +
                        gpu::kPluginEntry + "; build or install it again, or choose device cpu");
    const gpu::CudaPlugin* plugin = entry();
    if (std::string_view(plugin->abi) != gpu::kPluginAbi)
        return unusable(file.string() + " belongs to another build: it is \"" + plugin->abi +
                        "\", this program is \"" + gpu::kPluginAbi +
                        "\"; build or install both together, or choose device cpu");
    return plugin;
}

Result<const gpu::CudaPlugin*> cudaPlugin()
{
    static const Result<const gpu::CudaPlugin*> plugin = loadCudaPlugin(findCudaPlugin());
    return plugin;
}

Result<gpu::CudaFacts> inspectCuda()
{
    MR_ASSIGN(auto plugin, cudaPlugin());
    return plugin->inspect();
}

Result<std::unique_ptr<Device>> makeCudaDevice(std::uint64_t memoryBytes)
{
    MR_ASSIGN(auto plugin, cudaPlugin());
    return plugin->makeDevice({memoryBytes});
}

std::uint64_t cudaBaselineBytes(const Device& device)
{
    auto plugin = cudaPlugin();
    return plugin.ok() ? plugin.value()->baselineBytes(device) : 0;
}

} // namespace mr::app
