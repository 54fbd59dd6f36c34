// inspectMachine(): this PC's parts, from /proc, /sys and, where there is one, the NVIDIA driver.

#include "core/base/cpu_features.h"
#include "core/base/file.h"
#include "core/base/host_memory.h"
#include "core/base/nvml.h"
#include "core/base/thread.h"

#include <millrace/library.h>

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace mr {
namespace {

void readMemory(MachineInfo& info)
{
    if (const auto memory = readHostMemory("/")) {
        info.memoryBytes = memory->totalBytes;
        info.availableBytes = memory->availableBytes;
        info.memoryIsLimited = memory->isLimited;
    }
}

int availableThreads()
{
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return 1;
    return std::max(1, CPU_COUNT(&allowed));
}

// Runs and their history are kept below the user's data folder.
std::filesystem::path dataFolder()
{
    const char* data = std::getenv("XDG_DATA_HOME");
    if (data && *data == '/')
        return std::filesystem::path(data) / "millrace";
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : "/") / ".local/share/millrace";
}

std::vector<GpuInfo> readGpus()
{
    std::vector<GpuInfo> gpus;
    const std::unique_ptr<Nvml> nvml = Nvml::load();
    if (!nvml)
        return gpus;
    for (Nvml::Gpu handle : nvml->gpus()) {
        GpuInfo gpu;
        if (const auto name = handle ? nvml->name(handle) : std::nullopt) {
            gpu.name = *name;
            if (const auto memory = nvml->memory(handle))
                gpu.memoryBytes = memory->totalBytes;
        } else {
            gpu.name = fmt::format("NVIDIA GPU {}", gpus.size());
            gpu.note = "the driver does not answer for it";
        }
        gpus.push_back(std::move(gpu));
    }
    return gpus;
}

} // namespace

MachineInfo inspectMachine()
{
    MachineInfo info;
    info.cpuName = processorName();
    info.instructionSet = instructionSetName();
    info.physicalCores = static_cast<int>(physicalCores().size());
    info.threads = availableThreads();
    readMemory(info);
    if (Result<std::uint64_t> free = freeBytes(dataFolder()); free.ok())
        info.diskFreeBytes = free.value();
    info.gpus = readGpus();
    return info;
}

} // namespace mr
