#include "gpu/launch_order.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace mr::gpu {

namespace {

constexpr int kUsualQueues = 8; // with fewer, two of our streams may share one

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
    const std::string_view connections = valueOf("CUDA_DEVICE_MAX_CONNECTIONS");
    int queues = kUsualQueues;
    (void)std::from_chars(connections.data(), connections.data() + connections.size(), queues);
    if (queues < kUsualQueues)
        return sentence(fmt::format("CUDA_DEVICE_MAX_CONNECTIONS={}", queues));
    return {};
}

} // namespace mr::gpu
