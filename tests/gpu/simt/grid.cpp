#include "gpu/simt/grid.h"

#include "gpu/simt/machine.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace mr::simt {

namespace {

constexpr std::size_t kDefaultSharedBytes = 48 * 1024; // more has to be asked for

std::string g_fault;

std::map<const void*, std::size_t>& allowedSharedBytes()
{
    static std::map<const void*, std::size_t> allowed;
    return allowed;
}

uint3 blockAt(std::uint64_t index, const dim3& grid)
{
    return {static_cast<unsigned>(index % grid.x), static_cast<unsigned>(index / grid.x % grid.y),
        static_cast<unsigned>(index / grid.x / grid.y)};
}

// Position `i` of the schedule as a block index; `order` only for Order::Random.
std::uint64_t scheduled(
    std::uint64_t i, std::uint64_t count, const std::vector<std::uint64_t>& order)
{
    if (!order.empty())
        return order[i];
    return machine().schedule().order == Order::Descending ? count - 1 - i : i;
}

} // namespace

std::set<const void*>& loadedKernels()
{
    static std::set<const void*> loaded;
    return loaded;
}

std::set<KernelRun>& kernelRuns()
{
    static std::set<KernelRun> runs;
    return runs;
}

void setSchedule(const Schedule& schedule)
{
    machine().setSchedule(schedule);
}

cudaError_t runGrid(const Launch& launch)
{
    const auto allowed = allowedSharedBytes().find(launch.kernel);
    if (launch.sharedBytes >
        (allowed == allowedSharedBytes().end() ? kDefaultSharedBytes : allowed->second))
        return cudaErrorInvalidValue;
    const dim3& block = launch.block;
    kernelRuns().insert({launch.kernel, block.x * block.y * block.z, launch.grid.y > 1});
    Machine& one = machine();
    one.prepare(launch);
    const std::uint64_t count = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    std::vector<std::uint64_t> order;
    if (one.schedule().order == Order::Random) {
        order.resize(count);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), one.random());
    }
    for (std::uint64_t i = 0; i < count; ++i)
        if (!one.runBlock(blockAt(scheduled(i, count, order), launch.grid))) {
            g_fault = one.fault();
            return cudaErrorLaunchFailure;
        }
    return cudaSuccess;
}

const std::string& faultText() noexcept
{
    return g_fault;
}

} // namespace mr::simt

const char* cudaGetErrorName(cudaError_t code) noexcept
{
    switch (code) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorInvalidValue:
        return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
        return "cudaErrorInvalidConfiguration";
    case cudaErrorLaunchFailure:
        return "cudaErrorLaunchFailure";
    }
    return "unknown";
}

const char* cudaGetErrorString(cudaError_t code) noexcept
{
    return code == cudaErrorLaunchFailure ? mr::simt::faultText().c_str() : "refused";
}

cudaError_t cudaGetLastError() noexcept
{
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel)
{
    *attributes = {};
    mr::simt::loadedKernels().insert(kernel);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value)
{
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0)
        return cudaErrorInvalidValue;
    mr::simt::allowedSharedBytes()[kernel] = static_cast<std::size_t>(value);
    return cudaSuccess;
}
