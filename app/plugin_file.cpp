#include "app/plugin_file.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace mr::app {

namespace fs = std::filesystem;

fs::path pluginOfEnvironment(const char* environment)
{
    const char* named = std::getenv(environment);
    return named ? fs::path(named) : fs::path();
}

fs::path findPlugin(const char* environment, const char* fileName)
{
    if (fs::path named = pluginOfEnvironment(environment); !named.empty())
        return named;
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const char* place : {"../lib", "../lib/millrace", "."}) {
        const fs::path file = folder / place / fileName;
        if (fs::exists(file, error))
            return file.lexically_normal();
    }
    return {};
}

bool isSharedLibrary(const fs::path& file)
{
    std::array<char, 4> magic{};
    std::ifstream stream(file, std::ios::binary);
    stream.read(magic.data(), magic.size());
    return stream && std::string_view(magic.data(), magic.size()) == "\177ELF";
}

void* loadLibrary(const fs::path& file)
{
    std::error_code error;
    return ::dlopen(fs::absolute(file, error).c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string loaderText()
{
    const char* text = ::dlerror();
    return text ? text : "the system's loader gives no reason";
}

} // namespace mr::app
