#include "core/base/nvml.h"

#include "core/base/nvml_abi.h"

#include <dlfcn.h>

#include <array>

namespace mr {
namespace {

// Values from the public reference.
constexpr int kSuccess = 0;            // NVML_SUCCESS
constexpr int kPcieSent = 0;           // NVML_PCIE_UTIL_TX_BYTES
constexpr int kPcieReceived = 1;       // NVML_PCIE_UTIL_RX_BYTES
constexpr int kSensorOfTheGpu = 0;     // NVML_TEMPERATURE_GPU
constexpr int kSmClock = 1;            // NVML_CLOCK_SM
constexpr int kMemoryClock = 2;        // NVML_CLOCK_MEM
constexpr double kBytesPerKb = 1e3;    // the reference says KB, not KiB
constexpr double kMilliwatts = 1e3;    // in a watt
constexpr std::size_t kNameChars = 97; // NVML_DEVICE_NAME_V2_BUFFER_SIZE and one for the end

void closeLibrary(void* library)
{
    if (library)
        ::dlclose(library);
}

template <typename Fn>
void take(void* library, const char* symbol, Fn& fn)
{
    fn = reinterpret_cast<Fn>(::dlsym(library, symbol));
}

} // namespace

struct Nvml::Functions {
    std::unique_ptr<void, void (*)(void*)> library{nullptr, &closeLibrary};
    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    int (*count)(unsigned*) = nullptr;
    int (*byIndex)(unsigned, Gpu*) = nullptr;
    int (*byBusId)(const char*, Gpu*) = nullptr;
    int (*name)(Gpu, char*, unsigned) = nullptr;
    int (*memory)(Gpu, RawNvmlMemory*) = nullptr;
    int (*utilization)(Gpu, RawNvmlUtilization*) = nullptr;
    int (*pcie)(Gpu, int, unsigned*) = nullptr;
    int (*power)(Gpu, unsigned*) = nullptr;
    int (*temperature)(Gpu, int, unsigned*) = nullptr;
    int (*clock)(Gpu, int, unsigned*) = nullptr;

    void takeAll()
    {
        void* from = library.get();
        take(from, "nvmlInit_v2", init);
        take(from, "nvmlShutdown", shutdown);
        take(from, "nvmlDeviceGetCount_v2", count);
        take(from, "nvmlDeviceGetHandleByIndex_v2", byIndex);
        take(from, "nvmlDeviceGetHandleByPciBusId_v2", byBusId);
        take(from, "nvmlDeviceGetName", name);
        take(from, "nvmlDeviceGetMemoryInfo", memory);
        take(from, "nvmlDeviceGetUtilizationRates", utilization);
        take(from, "nvmlDeviceGetPcieThroughput", pcie);
        take(from, "nvmlDeviceGetPowerUsage", power);
        take(from, "nvmlDeviceGetTemperature", temperature);
        take(from, "nvmlDeviceGetClockInfo", clock);
    }

    // Without these there is nothing to ask for.
    bool usable() const { return init && shutdown && count && byIndex; }
};

std::unique_ptr<Nvml> Nvml::load(const std::string& library)
{
    auto functions = std::make_unique<Functions>();
    functions->library.reset(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!functions->library)
        return nullptr;
    functions->takeAll();
    if (!functions->usable() || functions->init() != kSuccess)
        return nullptr;
    return std::unique_ptr<Nvml>(new Nvml(std::move(functions)));
}

Nvml::Nvml(std::unique_ptr<Functions> functions)
    : m_functions(std::move(functions))
{
}

Nvml::~Nvml()
{
    m_functions->shutdown();
}

std::vector<Nvml::Gpu> Nvml::gpus() const
{
    unsigned count = 0;
    if (m_functions->count(&count) != kSuccess)
        return {};
    std::vector<Gpu> gpus(count, nullptr);
    for (unsigned i = 0; i < count; ++i) {
        if (m_functions->byIndex(i, &gpus[i]) != kSuccess)
            gpus[i] = nullptr;
    }
    return gpus;
}

Nvml::Gpu Nvml::find(const std::string& busIdOrName) const
{
    if (busIdOrName.empty())
        return nullptr;
    Gpu gpu = nullptr;
    if (m_functions->byBusId && m_functions->byBusId(busIdOrName.c_str(), &gpu) == kSuccess)
        return gpu;
    for (Gpu candidate : gpus()) {
        if (candidate && name(candidate) == busIdOrName)
            return candidate;
    }
    return nullptr;
}

std::optional<std::string> Nvml::name(Gpu gpu) const
{
    std::array<char, kNameChars> text{};
    const auto room = static_cast<unsigned>(text.size() - 1);
    if (!m_functions->name || m_functions->name(gpu, text.data(), room) != kSuccess)
        return std::nullopt;
    return text.data();
}

std::optional<GpuMemory> Nvml::memory(Gpu gpu) const
{
    RawNvmlMemory raw{};
    if (!m_functions->memory || m_functions->memory(gpu, &raw) != kSuccess)
        return std::nullopt;
    return GpuMemory{raw.total, raw.used};
}

std::optional<GpuUtilization> Nvml::utilization(Gpu gpu) const
{
    RawNvmlUtilization raw{};
    if (!m_functions->utilization || m_functions->utilization(gpu, &raw) != kSuccess)
        return std::nullopt;
    return GpuUtilization{static_cast<double>(raw.gpu), static_cast<double>(raw.memory)};
}

std::optional<double> Nvml::pcie(Gpu gpu, int counter) const
{
    unsigned kilobytes = 0;
    if (!m_functions->pcie || m_functions->pcie(gpu, counter, &kilobytes) != kSuccess)
        return std::nullopt;
    return kilobytes * kBytesPerKb;
}

std::optional<double> Nvml::pcieReceivedBytesPerSecond(Gpu gpu) const
{
    return pcie(gpu, kPcieReceived);
}

std::optional<double> Nvml::pcieSentBytesPerSecond(Gpu gpu) const
{
    return pcie(gpu, kPcieSent);
}

std::optional<double> Nvml::powerWatts(Gpu gpu) const
{
    unsigned milliwatts = 0;
    if (!m_functions->power || m_functions->power(gpu, &milliwatts) != kSuccess)
        return std::nullopt;
    return milliwatts / kMilliwatts;
}

std::optional<double> Nvml::temperatureCelsius(Gpu gpu) const
{
    unsigned celsius = 0;
    if (!m_functions->temperature ||
        m_functions->temperature(gpu, kSensorOfTheGpu, &celsius) != kSuccess)
        return std::nullopt;
    return celsius;
}

std::optional<double> Nvml::clock(Gpu gpu, int type) const
{
    unsigned mhz = 0;
    if (!m_functions->clock || m_functions->clock(gpu, type, &mhz) != kSuccess)
        return std::nullopt;
    return mhz;
}

std::optional<double> Nvml::smClockMhz(Gpu gpu) const
{
    return clock(gpu, kSmClock);
}

std::optional<double> Nvml::memoryClockMhz(Gpu gpu) const
{
    return clock(gpu, kMemoryClock);
}

} // namespace mr
