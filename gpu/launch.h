// launchKernel(): the one way a kernel is started. It takes kernels of the list (kernel_list.h)
// only.
//
// It refuses a shape no card takes before the launch, asks for the shared memory beyond 48 KiB,
// and reports a bad launch right after it. A failure while the kernel runs shows at the next
// Event::wait. A grid without a block is nothing to do, not an error.
//
// tests/gpu/simt puts a runtime of its own under it, which runs the kernel on the host.
//
// Threads  Engine thread.
// Errors   Internal names the kernel and the limit; those of toStatus() otherwise.

#pragma once

#include "gpu/command_count.h"
#include "gpu/cuda_status.h"
#include "gpu/kernel_list.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace mr::gpu {

struct LaunchShape {
    dim3 grid;
    dim3 block;
    std::size_t sharedBytes = 0; // dynamic; see dynamicShared() in device_math.cuh
};

// Limits of every supported card (sm_75 to sm_120).
inline constexpr unsigned kMaxBlockThreads = 1024;
inline constexpr unsigned kMaxGridX = 0x7fffffffU;
inline constexpr unsigned kMaxGridYZ = 65535;
inline constexpr std::size_t kMaxSharedBytes = 99 * 1024; // sm_86, 89, 120; sm_75 has 64 KiB
inline constexpr std::size_t kDefaultSharedBytes = 48 * 1024;

// Internal if the shape is outside the limits above.
Status checkLaunch(const char* kernel, const LaunchShape& shape);

// Blocks of `perBlock` that cover `count`, for grid.x. Precondition: at most kMaxGridX of them.
inline unsigned blocksFor(std::int64_t count, std::int64_t perBlock) noexcept
{
    return static_cast<unsigned>((count + perBlock - 1) / perBlock);
}

template <typename... Params, typename... Args>
Status launchKernel(const char* name, ListedKernel<Params...> kernel, const LaunchShape& shape,
    cudaStream_t stream, Args... args)
{
    if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0)
        return {};
    MR_TRY(checkLaunch(name, shape));
    if (shape.sharedBytes > kDefaultSharedBytes)
        MR_TRY(toStatus(
            cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel.function),
                cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.sharedBytes)),
            name));
    cudaLaunchConfig_t config{};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.sharedBytes;
    config.stream = stream;
    countCommand();
    return toStatus(
        cudaLaunchKernelEx(&config, kernel.function, static_cast<Params>(args)...), name);
}

} // namespace mr::gpu
