#include "gpu/launch.h"

#include <fmt/format.h>

#include <string>

namespace mr::gpu {

Status checkLaunch(const char* kernel, const LaunchShape& shape)
{
    const std::uint64_t threads = std::uint64_t{shape.block.x} * shape.block.y * shape.block.z;
    const auto refuse = [kernel](const std::string& what) {
        return Status::error(ErrorKind::Internal, std::string(kernel) + ": " + what);
    };
    if (threads == 0 || threads > kMaxBlockThreads)
        return refuse(
            fmt::format("{} threads in a block, want 1 to {}", threads, kMaxBlockThreads));
    if (shape.grid.x > kMaxGridX || shape.grid.y > kMaxGridYZ || shape.grid.z > kMaxGridYZ)
        return refuse(fmt::format("a grid of ({}, {}, {}) blocks is beyond what a card takes",
            shape.grid.x, shape.grid.y, shape.grid.z));
    if (shape.sharedBytes > kMaxSharedBytes)
        return refuse(fmt::format(
            "{} bytes of shared memory, at most {}", shape.sharedBytes, kMaxSharedBytes));
    return {};
}

} // namespace mr::gpu
