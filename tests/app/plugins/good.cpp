// A plugin that fits: a card of its own invention, and the CPU device as its device.

#include "core/device/cpu/cpu_device.h"
#include "gpu/plugin.h"
#include "gpu/plugin_abi.h"

namespace {

mr::Result<mr::gpu::CudaFacts> inspect()
{
    mr::gpu::CudaFacts facts;
    facts.name = "Invented GPU";
    facts.computeMajor = 7;
    facts.computeMinor = 5;
    facts.totalBytes = std::uint64_t{8} << 30;
    facts.freeBytes = std::uint64_t{6} << 30;
    return facts;
}

mr::Result<std::unique_ptr<mr::Device>> makeDevice(const mr::gpu::CudaDeviceOptions& options)
{
    mr::CpuDeviceOptions cpu;
    cpu.memoryBytes = static_cast<std::size_t>(options.memoryBytes);
    return mr::makeCpuDevice(cpu);
}

std::uint64_t baselineBytes(const mr::Device&)
{
    return 7;
}

} // namespace

extern "C" const mr::gpu::CudaPlugin* millraceCudaPlugin()
{
    static const mr::gpu::CudaPlugin plugin{
        mr::gpu::kPluginAbi, &inspect, &makeDevice, &baselineBytes};
    return &plugin;
}
