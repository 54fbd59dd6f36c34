#include "core/base/host_readings.h"

#include "core/base/host_memory.h"
#include "core/base/kernel_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <system_error>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr double kPercent = 100.0;

std::string firstLine(const fs::path& path)
{
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    return line;
}

// Folders of `folder` in the order of their names; empty if it is not there.
std::vector<fs::path> foldersIn(const fs::path& folder)
{
    std::vector<fs::path> found;
    std::error_code failed;
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
        found.push_back(it->path());
    std::sort(found.begin(), found.end());
    return found;
}

// The kernel's drivers for the sensors in x86 and Arm processors.
bool isProcessorSensor(std::string_view name)
{
    constexpr std::array<std::string_view, 4> kNames = {
        "coretemp", "k10temp", "zenpower", "cpu_thermal"};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Sensor of the package rather than of one core; Tdie is Tctl without its offset.
fs::path inputOfPackage(const fs::path& sensor)
{
    constexpr int kInputs = 32;
    for (const std::string_view wanted : {"Package id 0", "Tdie", "Tctl"}) {
        for (int i = 1; i <= kInputs; ++i) {
            const std::string base = fmt::format("temp{}", i);
            if (firstLine(sensor / (base + "_label")) == wanted)
                return sensor / (base + "_input");
        }
    }
    return sensor / "temp1_input";
}

} // namespace

std::optional<CpuTicks> parseCpuTicks(std::string_view stat)
{
    constexpr std::string_view kAll = "cpu ";
    if (!stat.starts_with(kAll))
        return std::nullopt;
    stat.remove_prefix(kAll.size());
    // user nice system idle iowait irq softirq steal; the two after them, the time of guests, are
    // in user and nice already (proc(5)).
    constexpr std::size_t kFields = 8;
    constexpr std::size_t kIdle = 3;
    constexpr std::size_t kWaiting = 4;
    CpuTicks ticks;
    for (std::size_t i = 0; i < kFields; ++i) {
        const auto number = takeNumber(stat);
        if (!number && i <= kIdle)
            return std::nullopt; // every kernel has the first four
        ticks.total += number.value_or(0);
        if (i != kIdle && i != kWaiting)
            ticks.busy += number.value_or(0);
    }
    return ticks;
}

std::optional<ProcessNumbers> parseProcessStat(std::string_view stat)
{
    const std::size_t nameEnd = stat.rfind(')');
    if (nameEnd == std::string_view::npos || nameEnd + 3 >= stat.size())
        return std::nullopt;
    stat.remove_prefix(nameEnd + 3); // ") S": the state is field 3 of proc(5)
    constexpr int kUserTime = 14;
    constexpr int kSystemTime = 15;
    constexpr int kResident = 24;
    ProcessNumbers numbers;
    for (int field = 4; field <= kResident; ++field) {
        stat.remove_prefix(std::min(stat.find_first_not_of(' '), stat.size()));
        if (stat.starts_with('-')) // a few are signed, none of ours
            stat.remove_prefix(1);
        const auto number = takeNumber(stat);
        if (!number)
            return std::nullopt;
        if (field == kUserTime || field == kSystemTime)
            numbers.cpuTicks += *number;
        if (field == kResident)
            numbers.residentPages = *number;
    }
    return numbers;
}

std::optional<double> readTemperature(const fs::path& sensor)
{
    constexpr double kMillidegrees = 1e3;
    if (const auto reading = readKernelNumber(sensor))
        return static_cast<double>(*reading) / kMillidegrees;
    return std::nullopt;
}

HostProbe::HostProbe(fs::path root)
    : m_root(std::move(root))
{
    findTemperature();
    findEnergy();
}

void HostProbe::findTemperature()
{
    for (const fs::path& sensor : foldersIn(m_root / "sys/class/hwmon")) {
        const fs::path input = inputOfPackage(sensor);
        if (isProcessorSensor(firstLine(sensor / "name")) && readKernelNumber(input)) {
            m_temperature = input;
            return;
        }
    }
    for (const fs::path& zone : foldersIn(m_root / "sys/class/thermal")) {
        const std::string type = firstLine(zone / "type");
        if ((type == "x86_pkg_temp" || type == "cpu-thermal") && readKernelNumber(zone / "temp")) {
            m_temperature = zone / "temp";
            return;
        }
    }
}

// RAPL counts microjoules per package; most systems let only root read them.
void HostProbe::findEnergy()
{
    for (const fs::path& domain : foldersIn(m_root / "sys/class/powercap")) {
        const bool isPackage = firstLine(domain / "name").starts_with("package-");
        if (isPackage && readKernelNumber(domain / "energy_uj"))
            m_energy.push_back({domain / "energy_uj",
                readKernelNumber(domain / "max_energy_range_uj").value_or(0), std::nullopt});
    }
}

void HostProbe::readProcessors(HostNumbers& numbers)
{
    const auto ticks = parseCpuTicks(readKernelFile(m_root / "proc/stat"));
    const auto process = parseProcessStat(readKernelFile(m_root / "proc/self/stat"));
    if (process)
        numbers.residentBytes = static_cast<double>(process->residentPages) *
                                static_cast<double>(::sysconf(_SC_PAGESIZE));
    if (ticks && m_ticks && ticks->total > m_ticks->total) {
        const auto all = static_cast<double>(ticks->total - m_ticks->total);
        // Idle time may run backwards a little; a share stays a share.
        const auto share = [all](std::uint64_t now, std::uint64_t before) {
            return std::min(
                kPercent, kPercent * static_cast<double>(now - std::min(now, before)) / all);
        };
        numbers.cpuPercent = share(ticks->busy, m_ticks->busy);
        if (process && m_processTicks)
            numbers.processPercent = share(process->cpuTicks, *m_processTicks);
    }
    m_ticks = ticks;
    m_processTicks = process ? std::optional(process->cpuTicks) : std::nullopt;
}

std::optional<double> HostProbe::readPower(std::int64_t nowNs)
{
    constexpr double kMicrojoulesPerNsInWatts = 1e3;
    double microjoules = 0.0;
    bool isWhole = !m_energy.empty() && nowNs > m_lastNs;
    for (Energy& domain : m_energy) {
        const auto now = readKernelNumber(domain.file);
        if (now && domain.last)
            microjoules += static_cast<double>(
                *now >= *domain.last ? *now - *domain.last : domain.range - *domain.last + *now);
        else
            isWhole = false;
        domain.last = now;
    }
    if (!isWhole)
        return std::nullopt;
    return microjoules / static_cast<double>(nowNs - m_lastNs) * kMicrojoulesPerNsInWatts;
}

HostNumbers HostProbe::read(std::int64_t nowNs)
{
    HostNumbers numbers;
    readProcessors(numbers);
    if (const auto memory = readHostMemory(m_root))
        numbers.availableBytes = static_cast<double>(memory->availableBytes);
    if (!m_temperature.empty())
        numbers.temperatureCelsius = readTemperature(m_temperature);
    numbers.powerWatts = readPower(nowNs);
    m_lastNs = nowNs;
    return numbers;
}

} // namespace mr
