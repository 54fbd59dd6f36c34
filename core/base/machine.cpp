// inspectMachine(): what this PC has, from /proc, /sys and, where there is one, the NVIDIA driver.

#include "core/base/cpu_features.h"
#include "core/base/file.h"
#include "core/base/thread.h"

#include <millrace/library.h>

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace mr {
namespace {

// The kB value of one line of /proc/meminfo, in bytes.
std::uint64_t memoryLine(std::string_view name)
{
    std::ifstream file("/proc/meminfo");
    std::string key;
    std::uint64_t kilobytes = 0;
    std::string unit;
    while (file >> key >> kilobytes) {
        if (key == name)
            return kilobytes * 1024;
        std::getline(file, unit);
    }
    return 0;
}

// A container's limit is below what /proc/meminfo says. "max" and a missing file are no limit.
std::uint64_t containerNumber(const char* path, std::uint64_t fallback)
{
    std::ifstream file(path);
    std::uint64_t value = 0;
    return file >> value ? value : fallback;
}

void readMemory(MachineInfo& info)
{
    info.memoryBytes = memoryLine("MemTotal:");
    info.availableBytes = memoryLine("MemAvailable:");
    const std::uint64_t limit = containerNumber("/sys/fs/cgroup/memory.max", UINT64_MAX);
    if (limit >= info.memoryBytes)
        return;
    const std::uint64_t used = containerNumber("/sys/fs/cgroup/memory.current", 0);
    info.memoryBytes = limit;
    info.availableBytes = std::min(info.availableBytes, limit - std::min(limit, used));
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

// The few calls of NVML that are needed, declared by hand: its header comes with the CUDA
// toolkit, its library with the driver, and neither need be here.
struct Nvml {
    struct Memory {
        unsigned long long total;
        unsigned long long free;
        unsigned long long used;
    };
    using Device = void*;

    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    int (*count)(unsigned*) = nullptr;
    int (*handle)(unsigned, Device*) = nullptr;
    int (*name)(Device, char*, unsigned) = nullptr;
    int (*memory)(Device, Memory*) = nullptr;

    template <typename Fn>
    static bool load(void* library, const char* symbol, Fn& fn)
    {
        fn = reinterpret_cast<Fn>(::dlsym(library, symbol));
        return fn != nullptr;
    }

    bool loadAll(void* library)
    {
        return load(library, "nvmlInit_v2", init) && load(library, "nvmlShutdown", shutdown) &&
               load(library, "nvmlDeviceGetCount_v2", count) &&
               load(library, "nvmlDeviceGetHandleByIndex_v2", handle) &&
               load(library, "nvmlDeviceGetName", name) &&
               load(library, "nvmlDeviceGetMemoryInfo", memory);
    }
};

void closeLibrary(void* library)
{
    if (library)
        ::dlclose(library);
}

std::vector<GpuInfo> readGpus()
{
    std::vector<GpuInfo> gpus;
    const std::unique_ptr<void, void (*)(void*)> library(
        ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), &closeLibrary);
    Nvml nvml;
    if (!library || !nvml.loadAll(library.get()) || nvml.init() != 0)
        return gpus;
    unsigned count = 0;
    if (nvml.count(&count) != 0)
        count = 0;
    for (unsigned i = 0; i < count; ++i) {
        Nvml::Device device = nullptr;
        std::array<char, 97> name{};
        Nvml::Memory memory{};
        GpuInfo gpu;
        if (nvml.handle(i, &device) != 0 ||
            nvml.name(device, name.data(), static_cast<unsigned>(name.size()) - 1) != 0) {
            gpu.name = "NVIDIA GPU " + std::to_string(i);
            gpu.note = "the driver does not answer for it";
        } else {
            gpu.name = name.data();
            if (nvml.memory(device, &memory) == 0)
                gpu.memoryBytes = memory.total;
        }
        gpus.push_back(std::move(gpu));
    }
    nvml.shutdown();
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
