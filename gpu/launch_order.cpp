#include "gpu/launch_order.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace mr::gpu {

namespace {

std::string_view valueOf(const char* variable)
{
    const char* value = std::getenv(variable);
    return value == nullptr ? std::string_view() : std::string_view(value);
}

std::string sentence(std::string_view setting)
{
    return fmt::format("{} is set: every step waits for updates and reads on the host, and is "
                       "slower; unset it for training",
        setting);
}

} // namespace

std::string serialisedLaunches()
{
    const std::string_view blocking = valueOf("CUDA_LAUNCH_BLOCKING");
    if (!blocking.empty() && blocking != "0")
        return sentence("CUDA_LAUNCH_BLOCKING");
    if (valueOf("CUDA_DEVICE_MAX_CONNECTIONS") == "1")
        return sentence("CUDA_DEVICE_MAX_CONNECTIONS=1");
    return {};
}

} // namespace mr::gpu
