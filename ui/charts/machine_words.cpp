#include "charts/machine_words.h"

#include "text/units.h"

#include <QCoreApplication>

namespace mr::ui {

namespace {

struct Words {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::MachineWords)
};

constexpr double kBytesPerGb = 1e9;
constexpr double kPercents = 100.0;

// A colour means the same in all charts.
enum Color : std::size_t {
    DeviceColor,
    DeviceMemoryColor,
    MillraceColor,
    ProcessorsColor,
    DriveColor,
};

std::function<QString(double)> withUnit(const QString& unit)
{
    return [unit](double value) { return compactText(value) + QChar(0xa0) + unit; };
}

MachineChart utilization()
{
    return {Words::tr("Utilization (%)"), QStringLiteral("machine-utilization"), 1.0, kPercents,
        [](double value) { return percentText(value); },
        {{MachineMetric::DeviceUtilization, Words::tr("device"),
             Words::tr("Share of the time in which the device worked at all."),
             QStringLiteral("device_percent"), DeviceColor},
            {MachineMetric::DeviceMemoryUtilization, Words::tr("device memory"),
                Words::tr("Share of the time in which the memory of the device was read or "
                          "written."),
                QStringLiteral("device_memory_percent"), DeviceMemoryColor},
            {MachineMetric::ProcessCpu, Words::tr("Millrace"),
                Words::tr("Share of all processors that this program used."),
                QStringLiteral("process_cpu_percent"), MillraceColor},
            {MachineMetric::HostCpu, Words::tr("all programs"),
                Words::tr("Share of all processors that all programs used together."),
                QStringLiteral("host_cpu_percent"), ProcessorsColor}}};
}

MachineChart memory()
{
    return {Words::tr("Memory (GiB)"), QStringLiteral("machine-memory"), kGiB, 0.0,
        [](double value) { return memoryText(value * kGiB); },
        {{MachineMetric::DeviceMemoryUsed, Words::tr("device"),
             Words::tr("Memory of the device that all programs use."),
             QStringLiteral("device_used_gib"), DeviceColor},
            {MachineMetric::ProcessResident, Words::tr("Millrace"),
                Words::tr("Main memory that this program uses."),
                QStringLiteral("process_resident_gib"), MillraceColor},
            {MachineMetric::HostMemoryAvailable, Words::tr("available"),
                Words::tr("Main memory that programs may still take."),
                QStringLiteral("host_available_gib"), ProcessorsColor}}};
}

MachineChart pcie()
{
    return {Words::tr("PCIe (GB/s)"), QStringLiteral("machine-pcie"), kBytesPerGb, 0.0,
        [](double value) { return linkText(value * kBytesPerGb); },
        {{MachineMetric::DevicePcieReceived, Words::tr("to the device"),
             Words::tr("Bytes that the device received, in 20 ms of each second."),
             QStringLiteral("pcie_rx_gb_per_s"), DeviceColor},
            {MachineMetric::DevicePcieSent, Words::tr("to the host"),
                Words::tr("Bytes that the device sent, in 20 ms of each second."),
                QStringLiteral("pcie_tx_gb_per_s"), DeviceMemoryColor}}};
}

MachineChart power()
{
    return {Words::tr("Power (W)"), QStringLiteral("machine-power"), 1.0, 0.0,
        withUnit(Words::tr("W")),
        {{MachineMetric::DevicePower, Words::tr("device"), Words::tr("The device with its memory."),
             QStringLiteral("device_power_w"), DeviceColor},
            {MachineMetric::HostPower, Words::tr("processors"),
                Words::tr("All processor packages, without the main memory."),
                QStringLiteral("host_power_w"), ProcessorsColor}}};
}

MachineChart temperature()
{
    return {Words::tr("Temperature (°C)"), QStringLiteral("machine-temperature"), 1.0, 0.0,
        withUnit(Words::tr("°C")),
        {{MachineMetric::DeviceTemperature, Words::tr("device"), {},
             QStringLiteral("device_celsius"), DeviceColor},
            {MachineMetric::HostTemperature, Words::tr("processors"),
                Words::tr("The first processor package."), QStringLiteral("host_celsius"),
                ProcessorsColor},
            {MachineMetric::DiskTemperature, Words::tr("SSD"),
                Words::tr("The warmest drive with a scratch folder of the run. Many slow down "
                          "above 70 or 80 °C."),
                QStringLiteral("ssd_celsius"), DriveColor}}};
}

MachineChart clocks()
{
    return {Words::tr("Clocks (MHz)"), QStringLiteral("machine-clocks"), 1.0, 0.0,
        withUnit(Words::tr("MHz")),
        {{MachineMetric::DeviceSmClock, Words::tr("device"),
             Words::tr("The clock of its multiprocessors."), QStringLiteral("sm_mhz"), DeviceColor},
            {MachineMetric::DeviceMemoryClock, Words::tr("device memory"), {},
                QStringLiteral("memory_mhz"), DeviceMemoryColor}}};
}

} // namespace

std::vector<MachineChart> MachineWords::charts()
{
    return {utilization(), memory(), pcie(), power(), temperature(), clocks()};
}

} // namespace mr::ui
