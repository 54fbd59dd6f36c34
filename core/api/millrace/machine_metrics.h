// Metrics of the machine, measured once a second while a run goes on: names and units.
//
// Threads  Values.
// Units    kMachineMetricInfos says them; percents of the processors are of all of them together.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mr {

enum class MachineMetric : std::uint8_t {
    DeviceUtilization,       // time in which the device worked at all
    DeviceMemoryUtilization, // time in which its memory was read or written
    DeviceMemoryUsed,        // by all programs
    DevicePcieReceived,
    DevicePcieSent,
    DevicePower,
    DeviceTemperature,
    DeviceSmClock,
    DeviceMemoryClock,
    HostCpu,    // all programs
    ProcessCpu, // this one
    ProcessResident,
    HostMemoryAvailable,
    HostTemperature,
    HostPower,       // the processor packages
    DiskTemperature, // the warmest drive that the run works on
};
inline constexpr std::size_t kMachineMetrics = 16;

struct MachineMetricInfo {
    std::string_view name; // in the history and in exported files
    std::string_view unit;
};

inline constexpr std::array<MachineMetricInfo, kMachineMetrics> kMachineMetricInfos = {{
    {"device.utilization", "%"},
    {"device.memory_utilization", "%"},
    {"device.memory_used", "B"},
    {"device.pcie_rx", "B/s"},
    {"device.pcie_tx", "B/s"},
    {"device.power", "W"},
    {"device.temperature", "degC"},
    {"device.sm_clock", "MHz"},
    {"device.memory_clock", "MHz"},
    {"host.cpu", "%"},
    {"process.cpu", "%"},
    {"process.resident", "B"},
    {"host.memory_available", "B"},
    {"host.temperature", "degC"},
    {"host.power", "W"},
    {"disk.temperature", "degC"},
}};

constexpr const MachineMetricInfo& infoOf(MachineMetric metric)
{
    return kMachineMetricInfos[static_cast<std::size_t>(metric)];
}

// Samples are kept by the second they fall into; one that was missed leaves its place empty.
inline constexpr std::int64_t kMachinePeriodMs = 1000;

// One moment. What this machine cannot say is absent.
struct MachineSample {
    std::int64_t timeMs = 0; // since the run began (active time)
    std::array<std::optional<double>, kMachineMetrics> values;

    std::optional<double>& operator[](MachineMetric metric)
    {
        return values[static_cast<std::size_t>(metric)];
    }
    const std::optional<double>& operator[](MachineMetric metric) const
    {
        return values[static_cast<std::size_t>(metric)];
    }
};

} // namespace mr
