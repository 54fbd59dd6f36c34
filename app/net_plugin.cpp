#include "app/net_plugin.h"

#include "app/net/plugin_abi.h"
#include "app/plugin_file.h"

#include <dlfcn.h>

#include <string>
#include <string_view>

namespace mr::app {
namespace fs = std::filesystem;
namespace {

constexpr const char* kNetFileName = "libmillrace_net.so";
constexpr const char* kNetEnvironment = "MILLRACE_NET_PLUGIN";

Status noNetwork(const std::string& text)
{
    return Status::error(ErrorKind::InvalidArgument, "network: " + text);
}

} // namespace

fs::path findNetPlugin()
{
    return findPlugin(kNetEnvironment, kNetFileName);
}

Result<const NetPlugin*> loadNetPlugin(const fs::path& file)
{
    std::error_code error;
    if (file.empty())
        return noNetwork(
            std::string(kNetFileName) +
            " is not beside the program, which was built without Qt, perhaps; build or "
            "install it");
    if (!fs::exists(file, error))
        return noNetwork(file.string() + " does not exist, but " + kNetEnvironment +
                         " names it; correct the variable or unset it");
    if (!isSharedLibrary(file))
        return noNetwork(file.string() +
                         " is not a shared library, so not the network plugin; build "
                         "or install it again");
    void* library = loadLibrary(file);
    if (library == nullptr)
        return noNetwork("the network plugin could not be loaded (" + loaderText() +
                         "); it needs Qt 6: install the package libqt6network6");
    const auto entry = reinterpret_cast<NetPluginEntry>(::dlsym(library, kNetPluginEntry));
    if (entry == nullptr)
        return noNetwork(file.string() + " is not the network plugin: it has no function " +
                         kNetPluginEntry + "; build or install it again");
    const NetPlugin* plugin = entry();
    if (std::string_view(plugin->abi) != kNetAbi)
        return noNetwork(file.string() + " belongs to another build: it is \"" + plugin->abi +
                         "\", this program is \"" + kNetAbi + "\"; build or install both together");
    return plugin;
}

Result<std::unique_ptr<HttpTransport>> openNetwork()
{
    MR_ASSIGN(const NetPlugin* plugin, loadNetPlugin(findNetPlugin()));
    return plugin->makeTransport();
}

} // namespace mr::app
