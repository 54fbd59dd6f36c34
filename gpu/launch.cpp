#include "gpu/launch.h"

#include <string>

namespace mr::gpu {

Status checkLaunch(const char* kernel, const LaunchShape& shape)
{
    const std::uint64_t threads = std::uint64_t{shape.block.x} * shape.block.y * shape.block.z;
    const auto refuse = [kernel](const std::string& what) {
        return Status::error(ErrorKind::Internal, std::string(kernel) + ": " + what);
    };
    if (threads == 0 || threads > kMaxBlockThreads)
        return refuse(std::to_string(threads) + " threads in a block, want 1 to " +
                      std::to_string(kMaxBlockThreads));
    if (shape.grid.x > kMaxGridX || shape.grid.y > kMaxGridYZ || shape.grid.z > kMaxGridYZ)
        return refuse("a grid of (" + std::to_string(shape.grid.x) + ", " +
                      std::to_string(shape.grid.y) + ", " + std::to_string(shape.grid.z) +
                      ") blocks is beyond what a card takes");
    if (shape.sharedBytes > kMaxSharedBytes)
        return refuse(std::to_string(shape.sharedBytes) + " bytes of shared memory, at most " +
                      std::to_string(kMaxSharedBytes));
    return {};
}

} // namespace mr::gpu
