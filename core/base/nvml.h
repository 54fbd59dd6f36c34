// Nvml: the NVIDIA driver's readings of its GPUs, through its management library.
//
// The library comes with the driver and is looked for when the program runs: nothing of it is
// needed to build, and a machine without it is an ordinary machine. Functions are taken one by one,
// so an old driver that lacks some still answers with the others.
//
// Threads  Any; the library is thread-safe. Calls block: pcie() for 40 ms, the others for less.
// Ownership Owns the loaded library and its initialisation; a Gpu is valid while its Nvml lives.
// Errors   None: values that cannot be read are absent.
// Units    In the field names.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mr {

// nvidia-ml: from NVML's reference, "API Reference Guide", NVIDIA.
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

struct GpuMemory {
    std::uint64_t totalBytes = 0;
    std::uint64_t usedBytes = 0;
};

struct GpuUtilization {
    double computePercent = 0.0; // over the driver's last sample period, 1/6 s to 1 s
    double memoryPercent = 0.0;
};

class Nvml
{
public:
    // nvmlDevice_t of the library.
    using Gpu = void*;

    // Null where there is no driver, or its library cannot be used.
    static std::unique_ptr<Nvml> load(const std::string& library = kNvmlLibrary);
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;
    ~Nvml();

    // In the order of the driver; null for one that it counts and does not answer for.
    std::vector<Gpu> gpus() const;
    // By PCI bus id ("00000000:65:00.0") or by name, the first that has it; null: none.
    Gpu find(const std::string& busIdOrName) const;

    std::optional<std::string> name(Gpu gpu) const;
    std::optional<GpuMemory> memory(Gpu gpu) const;
    std::optional<GpuUtilization> utilization(Gpu gpu) const;
    std::optional<double> pcieReceivedBytesPerSecond(Gpu gpu) const; // over 20 ms
    std::optional<double> pcieSentBytesPerSecond(Gpu gpu) const;
    std::optional<double> powerWatts(Gpu gpu) const;
    std::optional<double> temperatureCelsius(Gpu gpu) const;
    std::optional<double> smClockMhz(Gpu gpu) const;
    std::optional<double> memoryClockMhz(Gpu gpu) const;

private:
    struct Functions;
    explicit Nvml(std::unique_ptr<Functions> functions);
    std::optional<double> pcie(Gpu gpu, int counter) const;
    std::optional<double> clock(Gpu gpu, int type) const;

    std::unique_ptr<Functions> m_functions;
};

} // namespace mr
