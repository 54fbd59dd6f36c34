// The kernel's readings of the processors, the memory, the sensors and this process: /proc and /sys
// as text, and the numbers in it.
//
// Threads  The functions: any, pure except those with a root. HostProbe: one thread.
// Errors   None: values that cannot be read are absent.
// Units    In the names.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// Clock ticks since the machine started, all processors together.
struct CpuTicks {
    std::uint64_t busy = 0;
    std::uint64_t total = 0;
};

struct ProcessNumbers {
    std::uint64_t cpuTicks = 0;
    std::uint64_t residentPages = 0;
};

// The first line of /proc/stat.
std::optional<CpuTicks> parseCpuTicks(std::string_view stat);
// /proc/<pid>/stat. The name in it may hold anything, spaces and brackets too.
std::optional<ProcessNumbers> parseProcessStat(std::string_view stat);

// Degrees Celsius from a sensor's file, which holds thousandths; a sensor may fall silent any time.
std::optional<double> readTemperature(const std::filesystem::path& sensor);

// Since the last call.
struct HostNumbers {
    std::optional<double> cpuPercent;     // all processors, all programs
    std::optional<double> processPercent; // this one
    std::optional<double> residentBytes;
    std::optional<double> availableBytes;
    std::optional<double> temperatureCelsius; // the first processor package
    std::optional<double> powerWatts;         // all packages
};

// Looks for the sensors once and remembers the last counters.
class HostProbe
{
public:
    explicit HostProbe(std::filesystem::path root = "/");

    // `nowNs` on a steady clock: power is energy over the time between two calls.
    HostNumbers read(std::int64_t nowNs);

private:
    struct Energy { // one RAPL domain
        std::filesystem::path file;
        std::uint64_t range = 0; // the counter starts again after this
        std::optional<std::uint64_t> last;
    };

    void findTemperature();
    void findEnergy();
    void readProcessors(HostNumbers& numbers);
    std::optional<double> readPower(std::int64_t nowNs);

    std::filesystem::path m_root;
    std::filesystem::path m_temperature; // empty: there is none
    std::vector<Energy> m_energy;
    std::optional<CpuTicks> m_ticks;
    std::optional<std::uint64_t> m_processTicks;
    std::int64_t m_lastNs = 0;
};

} // namespace mr
